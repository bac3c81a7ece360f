"""What an image means on a machine that has no images: the host's own programs, a directory with others, or nothing.

    images:
      "busybox:*": {}                          # the host's own programs
      "registry.example/app:1": {command: [/usr/local/bin/serve], args: [--port, "80"]}
      "debian:*": {root: /srv/roots/debian}    # a directory with a system in it, as debootstrap makes them

The first pattern that fits counts. `command` and `args` stand for what the image says, so those of a container come before them.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from msgspec import Struct

from drayman.api.documents import text_of
from drayman.api.errors import DocumentError
from drayman.api.near_names import did_you_mean
from drayman.api.struct import Json
from drayman.api.syntax.yaml_builder import Segments, YamlDocument
from drayman.api.syntax.yaml_text import parse_yaml
from drayman.node.agent.spec import Container

HOST_IMAGE: Final = "host"
"""The image that means the host's own programs, whether or not there is a file."""
_PAUSE: Final = ("*/pause:*", "pause:*", "*/pause", "pause")
_PAUSE_COMMAND: Final = ("sleep", "infinity")
_IMAGES: Final = "images"
_FIELDS: Final = frozenset({"command", "args", "root"})


class ImageError(Exception):
    """An image means nothing here, or says nothing that could be run. `reason` is that of the container's status."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Meaning(Struct, frozen=True):
    """What an image stands for."""

    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    root: str = ""
    """The directory that containers see as their root; empty for the host's."""


class Images:
    """What images mean on this node."""

    def __init__(self, meanings: dict[str, Meaning] | None = None) -> None:
        self._meanings = {
            **(meanings or {}),
            HOST_IMAGE: Meaning(),
            **{pattern: Meaning(_PAUSE_COMMAND) for pattern in _PAUSE},
        }

    @classmethod
    def read(cls, file: str, data: bytes) -> Images:
        """From a file of YAML or JSON. Raises DocumentError, which names the file, the line, the image and the field."""
        documents = list(parse_yaml(file, text_of(file, data), with_lines=True))
        if len(documents) != 1:
            raise DocumentError(file, 0, f"is to be one document with `{_IMAGES}`")
        return cls(_Reader(file, documents[0]).meanings())

    @property
    def have_roots(self) -> bool:
        return any(meaning.root for meaning in self._meanings.values())

    def root(self, container: Container) -> str:
        """The directory that a container sees as its root; empty for the host's. Raises ImageError."""
        return self._meaning(container.image).root

    def argv(self, container: Container) -> tuple[str, ...]:
        """What is run for a container, before variables are expanded. Raises ImageError."""
        meaning = self._meaning(container.image)
        command = container.command or meaning.command
        # As with images: arguments of the image belong to the command of the image.
        args = container.args or (() if container.command else meaning.args)
        if not command and not args:
            raise ImageError(
                "CreateContainerError",
                f"container {container.name} has no command, and image {container.image} names none on this node",
            )
        return (*command, *args)

    def _meaning(self, image: str) -> Meaning:
        for pattern, meaning in self._meanings.items():
            if fnmatchcase(image, pattern):
                return meaning
        raise ImageError(
            "ErrImageNeverPull",
            f"image {image} means nothing on this node: it runs the programs of its host, and pulls no images;"
            " use image: host with a command, or name it in the file that is given with --images",
        )


class _Reader:
    """Reads one document."""

    def __init__(self, file: str, document: YamlDocument) -> None:
        self._file = file
        self._document = document

    def meanings(self) -> dict[str, Meaning]:
        found = self._fields((), frozenset({_IMAGES}))
        if _IMAGES not in found:
            raise self._error((), f"`{_IMAGES}` is missing")
        images = self._mapping((_IMAGES,))
        return {pattern: self._meaning((_IMAGES, pattern)) for pattern in images}

    def _meaning(self, path: Segments) -> Meaning:
        fields = self._fields(path, _FIELDS)
        words = {name: self._words((*path, name)) for name in ("command", "args") if name in fields}
        return Meaning(**words, root=self._root((*path, "root")) if "root" in fields else "")

    def _words(self, path: Segments) -> tuple[str, ...]:
        value = self._value(path)
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise self._error(path, "must be a list of texts; numbers have to be in quotes")
        return tuple(value)

    def _root(self, path: Segments) -> str:
        value = self._value(path)
        if not isinstance(value, str):
            raise self._error(path, "must be a text")
        if value and not Path(value).is_absolute():
            raise self._error(path, f"{value} is not an absolute path")
        if value and not Path(value).is_dir():
            raise self._error(path, f"there is no directory {value}")
        return value

    def _fields(self, path: Segments, known: frozenset[str]) -> dict[str, Json]:
        """A mapping that has no other fields."""
        value = self._mapping(path)
        for name in value:
            if name not in known:
                raise self._error((*path, name), f"is unknown{did_you_mean(name, known)}")
        return value

    def _mapping(self, path: Segments) -> dict[str, Json]:
        value = self._value(path)
        if not isinstance(value, dict):
            raise self._error(path, "must be a mapping")
        return value

    def _value(self, path: Segments) -> Json:
        value = self._document.value
        for name in path:
            value = value[name]
        return value

    def _error(self, path: Segments, message: str) -> DocumentError:
        """`path` is at most that of a field of an image."""
        match path:
            case ():
                what = "the file"
            case (field,):
                what = field
            case (images, pattern, *fields):
                what = ".".join((f"{images}[{pattern}]", *fields))
        return DocumentError(self._file, self._document.line_of(path), f"{what}: {message}")
