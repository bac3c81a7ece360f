"""Specifications as files. A file is replaced as a whole, because runtimes read the folder at any time."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from drayman.api.carrying import unknown_fields
from drayman.api.codec import convert, encode
from drayman.api.errors import ApiError
from drayman.api.struct import Json
from drayman.plugins.cdi.checking import problems_of
from drayman.plugins.cdi.model import Spec
from drayman.plugins.cdi.versions import lowest_version
from drayman.plugins.errors import CdiError
from drayman.plugins.files import write_atomically

LARGEST: Final = 16 * 2**20
"""A file of a machine with many devices has less than one."""
ENDINGS: Final = (".json", ".yaml", ".yml")


def file_name(kind: str, transient_id: str) -> str:
    """The name of a file that goes when what it is about has ended."""
    return f"{kind.replace('/', '-')}_{transient_id}.json"


def write_spec(path: Path, spec: Spec) -> Spec:
    """Write a specification with the lowest version that has all it uses; returns it so. Raises CdiError, OSError."""
    versioned = replace(spec, cdi_version=lowest_version(spec))
    _require(versioned, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, encode(versioned))
    return versioned


def read_spec(path: Path) -> Spec:
    """Raises CdiError with everything that is wrong with the file, and OSError."""
    value = _parse(path)
    if not isinstance(value, dict):
        raise CdiError(f"{path}: it is no object")
    unknown = list(unknown_fields(Spec, value))
    if unknown:
        raise CdiError(f"{path}: unknown fields: {', '.join(unknown)}")
    try:
        spec = convert(Spec, value)
    except ApiError as error:
        raise CdiError(f"{path}: {error}") from error
    _require(spec, path)
    return spec


def _read(path: Path) -> bytes:
    """Of a regular file, for others may block whoever opens them. Raises CdiError and OSError."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise CdiError(f"{path}: it is no regular file")
        if found.st_size > LARGEST:
            raise CdiError(f"{path}: it has {found.st_size} bytes; {LARGEST} are the most")
        return file.read(LARGEST)


def _parse(path: Path) -> Json:
    content = _read(path)
    try:
        if path.suffix == ".json":
            return msgspec.json.decode(content)
        import yaml  # only files of others are YAML

        return yaml.safe_load(content)
    except Exception as error:  # the two parsers have no common error
        raise CdiError(f"{path}: {error}") from error


def _require(spec: Spec, path: Path) -> None:
    problems = problems_of(spec)
    if problems:
        raise CdiError(f"{path}: {'; '.join(problems)}")
