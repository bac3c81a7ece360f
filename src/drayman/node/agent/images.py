"""What an image means on a machine that has no images: the host's own programs, or nothing.

    images:
      "busybox:*": {}                          # the host's own programs
      "registry.example/app:1": {command: [/usr/local/bin/serve], args: [--port, "80"]}

The first pattern that fits counts. `command` and `args` stand for what the image says, so those of a container come before them.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct, ValidationError, convert

from drayman.api.errors import DocumentError
from drayman.api.syntax.json_text import decode_text
from drayman.api.syntax.yaml_text import parse_yaml
from drayman.node.agent.spec import Container

HOST_IMAGE: Final = "host"
"""The image that means the host's own programs, whether or not there is a file."""
_PAUSE: Final = ("*/pause:*", "pause:*", "*/pause", "pause")
_PAUSE_COMMAND: Final = ("sleep", "infinity")


class ImageError(Exception):
    """An image means nothing here, or says nothing that could be run. `reason` is that of the container's status."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Meaning(Struct, frozen=True, forbid_unknown_fields=True):
    """What an image stands for."""

    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    images: dict[str, Meaning]


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
        """From a file of YAML or JSON. Raises DocumentError, which names the file."""
        documents = list(parse_yaml(file, decode_text(data), with_lines=True))
        if len(documents) != 1:
            raise DocumentError(file, 0, "is to be one document with `images`")
        try:
            return cls(convert(documents[0].value, _File).images)
        except ValidationError as error:
            raise DocumentError(file, documents[0].line, str(error)) from error

    def argv(self, container: Container) -> tuple[str, ...]:
        """What is run for a container, before variables are expanded. Raises ImageError."""
        meaning = self._meaning(container.image)
        command = container.command or meaning.command
        # As with images: arguments of the image belong to the command of the image.
        args = container.args or (() if container.command else meaning.args)
        if not command and not args:
            raise ImageError(
                "CreateContainerError",
                f"container {container.name} has no command, and image {container.image} means the host's own programs",
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
