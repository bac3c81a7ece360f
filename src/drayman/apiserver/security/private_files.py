"""Files that only their owner may read: keys, tokens, kubeconfigs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

OWNER_ONLY: Final = 0o600


def write_private(path: Path, data: bytes) -> None:
    """Write a file for its owner only, atomically: a crash leaves the old file or the new one. Raises OSError."""
    partial = path.with_name(f".{path.name}.new")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
