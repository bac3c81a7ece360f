"""Reading what a user names and writing what they asked for, with errors that say which file and why."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from drayman.cli.errors import UserError

STANDARD: Final = "-"
"""Stands for standard input or output where a file is expected."""

MOST_BYTES: Final = 1 << 30
"""Inputs are read whole; more than this is a mistake or an attack."""


def display_name(path: str) -> str:
    """What to call a file in a message."""
    return "<stdin>" if path == STANDARD else path


def read(path: str) -> bytes:
    """The content of a file, or of standard input for `-`."""
    try:
        if path == STANDARD:
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                _refuse_large(path, os.fstat(file.fileno()).st_size)
                data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"{display_name(path)}: cannot be read: {_reason(error)}") from error
    except ValueError as error:  # a path with a null character
        raise UserError(f"{path!r}: is no file name: {error}") from error
    _refuse_large(path, len(data))
    return data


def _refuse_large(path: str, size: int) -> None:
    if size > MOST_BYTES:
        raise UserError(f"{display_name(path)}: is larger than {MOST_BYTES >> 20} MiB")


@contextmanager
def writing(path: str) -> Iterator[BinaryIO]:
    """A stream to write results to: standard output for `-`.

    A file appears whole or not at all: it is written beside its place and renamed when the block ends well.
    """
    if path == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    if target.exists() and not target.is_file():  # a pipe or a device, which renaming would replace
        with _opened(target) as file:
            yield file
        return
    with _beside(target) as file:
        yield file


@contextmanager
def _opened(target: Path) -> Iterator[BinaryIO]:
    try:
        file = target.open("wb")
    except OSError as error:
        raise UserError(f"{target}: cannot be written: {_reason(error)}") from error
    with file:
        yield file


@contextmanager
def _beside(target: Path) -> Iterator[BinaryIO]:
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise UserError(f"{target}: cannot be written: {_reason(error)}") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
