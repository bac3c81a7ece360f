"""Opens what lies below a directory, wherever the links in it lead. Part of the shim: it imports nothing but the standard library.

A container may put a link into its volume at any moment, also between the look of somebody else and what follows from it. So the parts of a
path are opened one after the other, each in the one before, and what has been opened is used by its descriptor.
"""

from __future__ import annotations

import errno
import os
import stat

MOST_LINKS = 40
"""In one path, as the system has it."""
_ITSELF = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def by_descriptor(descriptor: int) -> str:
    """A path for what is open, whatever has become of its name. It ends with the descriptor, and with this process."""
    return f"/proc/self/fd/{descriptor}"


def open_below(base: int, path: str, *, follows: bool = False, mode: int | None = None) -> int:
    """A descriptor that names what a path leads to below a directory, and is good for nothing else (O_PATH).

    `follows`: whether links are followed, as long as they lead nowhere else. All others are refused.
    `mode`: that of directories that are made where there is nothing. Without it nothing is made.
    Raises OSError, which names the path: EXDEV for one that leads out, ELOOP for a link that is not followed.
    """
    try:
        return _open_below(base, path, follows, mode)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def _open_below(base: int, path: str, follows: bool, mode: int | None) -> int:
    way = [os.dup(base)]
    left, links = path.split("/"), 0
    try:
        while left:
            part = left.pop(0)
            if part == "..":
                os.close(way.pop())
                if not way:
                    raise OSError(errno.EXDEV, "leads out")
            elif part and part != ".":
                way.append(_open_part(way[-1], part, mode))
                if stat.S_ISLNK(os.fstat(way[-1]).st_mode):
                    links += 1
                    left = _target(way[-1], follows and links <= MOST_LINKS) + left
                    os.close(way.pop())
        return os.dup(way[-1])
    finally:
        for descriptor in way:
            os.close(descriptor)


def _open_part(folder: int, name: str, mode: int | None) -> int:
    try:
        return os.open(name, _ITSELF, dir_fd=folder)
    except FileNotFoundError:
        if mode is None:
            raise
    try:
        os.mkdir(name, 0o700, dir_fd=folder)
    except FileExistsError:  # somebody else was quicker
        return os.open(name, _ITSELF, dir_fd=folder)
    made = os.open(name, _ITSELF | os.O_DIRECTORY, dir_fd=folder)
    os.chmod(by_descriptor(made), mode)  # whatever is masked here
    return made


def _target(link: int, is_followed: bool) -> list[str]:
    if not is_followed:
        raise OSError(errno.ELOOP, "leads through a link")
    found = os.readlink("", dir_fd=link)
    if found.startswith("/"):
        raise OSError(errno.EXDEV, "leads out")
    return found.split("/")
