"""Reading what a user names and writing what they asked for, with errors that say which file and why."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import click

from drayman.cli.errors import UserError, reason

STANDARD: Final = "-"
"""Stands for standard input or output where a file is expected."""

PATH: Final = click.Path(readable=False)
"""The type of a parameter that names a file. It only lets shells complete it: errors are reported when the file is read."""

MOST_BYTES: Final = 1 << 29
"""Inputs are read whole; more than this is a mistake or an attack."""

_ENDINGS: Final = (".yaml", ".yml", ".json")
"""Extensions of manifest files."""

_PREFIX: Final = 50
"""Characters of a file's name that its temporary file copies: the result must not get too long."""


def display_name(path: str) -> str:
    """What to call a file in a message. Names are bytes, and those that are not text are spelt out."""
    if path == STANDARD:
        return "<stdin>"
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def manifests_in(folder: str) -> list[str]:
    """The manifests directly inside a folder. Raises UserError where there are none: then it is probably the wrong folder."""
    name = display_name(folder)
    try:
        found = sorted(str(entry) for entry in Path(folder).iterdir() if entry.suffix in _ENDINGS)
    except OSError as error:
        raise UserError(f"{name}: cannot be read: {reason(error)}") from error
    if not found:
        raise UserError(f"{name}: has no files that end in {', '.join(_ENDINGS)}")
    return found


def read_all(paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """(name, content) of every file, folders replaced by the manifests in them. Raises UserError."""
    for path in paths:
        for name in manifests_in(path) if Path(path).is_dir() else (path,):
            yield display_name(name), read(name)


def read(path: str) -> bytes:
    """The content of a file, or of standard input for `-`."""
    if not path:
        raise UserError("the name of a file is empty")
    try:
        if path == STANDARD:
            data = _standard_input().read(MOST_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                _refuse_large(path, os.fstat(file.fileno()).st_size)
                data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"{display_name(path)}: cannot be read: {reason(error)}") from error
    except ValueError as error:  # a path with a null character
        raise UserError(f"{path!r}: not a file name: {error}") from error
    _refuse_large(path, len(data))
    return data


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise UserError(f"{display_name(STANDARD)}: cannot be read: it is closed")
    return sys.stdin.buffer


def _refuse_large(path: str, size: int) -> None:
    if size > MOST_BYTES:
        raise UserError(f"{display_name(path)}: is larger than {MOST_BYTES >> 20} MiB")


def refuse_overwriting(results: str, *inputs: str) -> None:
    """Results must not overwrite what they are computed from."""
    if results == STANDARD or not os.path.isfile(results):
        return
    for path in inputs:
        if path != STANDARD and os.path.exists(path) and os.path.samefile(path, results):
            raise UserError(f"{display_name(results)}: is an input and cannot be the result too")


@contextmanager
def writing(path: str) -> Iterator[BinaryIO]:
    """A stream to write results to: standard output for `-`.

    A file appears whole or not at all: it is written under a temporary name and renamed when the block succeeds.
    """
    try:
        with _stream(path) as file:
            yield file
    except BrokenPipeError:
        raise  # the reader of the output has gone, which is not an error
    except OSError as error:
        name = "<stdout>" if path == STANDARD else display_name(path)
        raise UserError(f"{name}: cannot be written: {reason(error)}") from error
    except ValueError as error:
        if "\0" not in path:
            raise
        raise UserError(f"{path!r}: not a file name: {error}") from error


@contextmanager
def _stream(path: str) -> Iterator[BinaryIO]:
    if not path:
        raise UserError("the name of a file is empty")
    if path == STANDARD:
        if sys.stdout is None:
            raise UserError("<stdout>: cannot be written: it is closed")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(os.path.realpath(path))  # a link stays a link; its target is replaced
    if target.exists() and not target.is_file():  # a pipe or a device, which renaming would replace
        with target.open("wb") as file:
            yield file
        return
    with _beside(target) as file:
        yield file


@contextmanager
def _beside(target: Path) -> Iterator[BinaryIO]:
    """A new file that replaces `target` in the end.

    Its name is chosen before it exists, inside the block that removes it: an interrupt may come between any two steps.
    """
    beside = target.with_name(f".{target.name[:_PREFIX]}.{secrets.token_hex(8)}")
    try:
        with beside.open("xb") as file:
            yield file
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
