"""The sockets of plugins: where they are, how long their names may be, and what becomes of those that a dead process left behind."""

from __future__ import annotations

import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from drayman.plugins.errors import SocketError

REGISTRY: Final = Path("/var/lib/kubelet/plugins_registry")
PLUGINS: Final = Path("/var/lib/kubelet/plugins")
LONGEST_PATH: Final = 107
"""Bytes of a path that a unix socket can be bound to: 108 on Linux with the closing zero."""
_REGISTRATION_END: Final = "-reg.sock"


@dataclass(frozen=True, slots=True)
class Sockets:
    """The two sockets of a driver: one in the registry, by which a node finds it, and one with its services."""

    registration: Path
    services: Path

    @classmethod
    def of(cls, driver: str, registry: Path, plugin_dir: Path, instance: str = "") -> Sockets:
        """The sockets of one instance of a driver. Without a name for it there is only one instance at a time.

        Raises SocketError.
        """
        part = f"-{instance}" if instance else ""
        made = cls(
            registry.absolute() / f"{driver}{part}{_REGISTRATION_END}",
            plugin_dir.absolute() / f"dra{part}.sock",
        )
        for path in (made.registration, made.services):
            length = len(os.fsencode(path))
            if length > LONGEST_PATH:
                raise SocketError(
                    f"{path}: the path of a socket has at most {LONGEST_PATH} bytes, and this one {length};"
                    " choose a shorter folder"
                )
        return made


def address(path: Path) -> str:
    """A socket as gRPC names it."""
    return f"unix:{quote(str(path))}"


def is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def answers(path: Path) -> bool:
    """Whether a process listens on a socket. That is known at once: nobody has to accept the connection."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except BlockingIOError:
            return True  # its queue is full, so there is one
    return True


def make_way(path: Path) -> None:
    """Remove the socket that a dead process left. Raises SocketError if it is not dead, or not a socket."""
    if not os.path.lexists(path):
        return
    if not is_socket(path):
        raise SocketError(f"{path}: there is something else than a socket")
    if answers(path):
        raise SocketError(
            f"{path}: another process serves there; stop it, or give this one a name of its own with --instance"
        )
    path.unlink(missing_ok=True)


def remove_dead(driver: str, registry: Path, plugin_dir: Path) -> list[Path]:
    """Remove the sockets of instances of a driver that are no longer there; returns which."""
    found = [*registry.glob(f"{driver}-*{_REGISTRATION_END}"), *plugin_dir.glob("dra-*.sock")]
    dead = [path for path in found if is_socket(path) and not answers(path)]
    for path in dead:
        path.unlink(missing_ok=True)
    return dead
