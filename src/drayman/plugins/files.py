"""Files that other processes read while they are written, and that must survive a power cut."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Replace a file: readers see the old content or the new one, and after a return it is the new one whatever happens. Raises OSError."""
    # Readers of the folder skip names that begin with a dot.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def remove_for_good(path: Path) -> None:
    """Remove a file, if it is there, so that it does not come back after a power cut. Raises OSError."""
    try:
        path.unlink()
    except FileNotFoundError:
        return
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have what was added to a folder and removed from it reach the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
