"""A whole embedded API server: a directory with its state, certificates and tokens, and the process that serves it.

Commands that only query a running instance need just `folder`, so the server behind the other names is imported when one of them
is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drayman.apiserver.instance.errors import AddressTakenError, InstanceError
from drayman.apiserver.instance.folder import Folder, FolderError, Record

if TYPE_CHECKING:
    from drayman.apiserver.instance.running import Instance, Options, start

__all__ = [
    "AddressTakenError",
    "Folder",
    "FolderError",
    "Instance",
    "InstanceError",
    "Options",
    "Record",
    "start",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from drayman.apiserver.instance import running

    return getattr(running, name)
