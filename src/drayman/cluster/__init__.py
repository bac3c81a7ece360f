"""One way to talk to a cluster, whichever it is.

`Client` is the protocol, `HttpClient` its implementation for any Kubernetes API server, `InProcessClient` the one for the embedded
server in the same process. `Informer` follows objects, `update_with_retry` changes one, `LeaderElector` lets one of many work. Names
are imported when first used: the store below this package must not cost its users an HTTP client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drayman.cluster.backend import Backend
    from drayman.cluster.backoff import Backoff
    from drayman.cluster.client import Client, Page, Scale
    from drayman.cluster.event_buffer import Reference
    from drayman.cluster.informer import Informer, Notice, Selection
    from drayman.cluster.informers import Informers
    from drayman.cluster.inprocess import InProcessClient
    from drayman.cluster.kube.client import HttpClient
    from drayman.cluster.leading import Election, LeaderElector
    from drayman.cluster.options import (
        DeleteOptions,
        GetOptions,
        ListOptions,
        WatchOptions,
        WriteOptions,
    )
    from drayman.cluster.patches import (
        Patch,
        apply_patch,
        json_patch,
        merge_patch,
        strategic_merge_patch,
    )
    from drayman.cluster.recording import EventRecorder
    from drayman.cluster.resources import Resource, generic, typed
    from drayman.cluster.retry import update_with_retry
    from drayman.cluster.watching import Bookmark, Change
    from drayman.cluster.workqueue import WorkQueue
    from drayman.cluster.writes import (
        BindWrite,
        CreateWrite,
        DeleteWrite,
        PartsWrite,
        PatchWrite,
        RemoveWrite,
        UpdateWrite,
    )

__all__ = [
    "Backend",
    "Backoff",
    "BindWrite",
    "Bookmark",
    "Change",
    "Client",
    "CreateWrite",
    "DeleteOptions",
    "DeleteWrite",
    "Election",
    "EventRecorder",
    "GetOptions",
    "HttpClient",
    "InProcessClient",
    "Informer",
    "Informers",
    "LeaderElector",
    "ListOptions",
    "Notice",
    "Page",
    "PartsWrite",
    "Patch",
    "PatchWrite",
    "Reference",
    "RemoveWrite",
    "Resource",
    "Scale",
    "Selection",
    "UpdateWrite",
    "WatchOptions",
    "WorkQueue",
    "WriteOptions",
    "apply_patch",
    "generic",
    "json_patch",
    "merge_patch",
    "strategic_merge_patch",
    "typed",
    "update_with_retry",
]

_HOMES = {
    "Backend": "drayman.cluster.backend",
    "Backoff": "drayman.cluster.backoff",
    "BindWrite": "drayman.cluster.writes",
    "Bookmark": "drayman.cluster.watching",
    "Change": "drayman.cluster.watching",
    "Client": "drayman.cluster.client",
    "CreateWrite": "drayman.cluster.writes",
    "DeleteOptions": "drayman.cluster.options",
    "DeleteWrite": "drayman.cluster.writes",
    "Election": "drayman.cluster.leading",
    "EventRecorder": "drayman.cluster.recording",
    "GetOptions": "drayman.cluster.options",
    "HttpClient": "drayman.cluster.kube.client",
    "InProcessClient": "drayman.cluster.inprocess",
    "Informer": "drayman.cluster.informer",
    "Informers": "drayman.cluster.informers",
    "LeaderElector": "drayman.cluster.leading",
    "ListOptions": "drayman.cluster.options",
    "Notice": "drayman.cluster.informer",
    "Page": "drayman.cluster.client",
    "PartsWrite": "drayman.cluster.writes",
    "Patch": "drayman.cluster.patches",
    "PatchWrite": "drayman.cluster.writes",
    "Reference": "drayman.cluster.event_buffer",
    "RemoveWrite": "drayman.cluster.writes",
    "Resource": "drayman.cluster.resources",
    "Scale": "drayman.cluster.client",
    "Selection": "drayman.cluster.informer",
    "UpdateWrite": "drayman.cluster.writes",
    "WatchOptions": "drayman.cluster.options",
    "WorkQueue": "drayman.cluster.workqueue",
    "WriteOptions": "drayman.cluster.options",
    "apply_patch": "drayman.cluster.patches",
    "generic": "drayman.cluster.resources",
    "json_patch": "drayman.cluster.patches",
    "merge_patch": "drayman.cluster.patches",
    "strategic_merge_patch": "drayman.cluster.patches",
    "typed": "drayman.cluster.resources",
    "update_with_retry": "drayman.cluster.retry",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
