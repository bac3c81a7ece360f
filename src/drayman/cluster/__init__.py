"""One way to talk to any cluster.

`Client` is the protocol, `HttpClient` its implementation for any Kubernetes API server, `InProcessClient` the one for the embedded server
in the same process. `Informer` follows objects, `LeaderElector` lets one of many candidates work. Names are imported when first
used: the store below this package must not cost its users an HTTP client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from drayman.cluster.backend import Backend as Backend
    from drayman.cluster.backoff import Backoff as Backoff
    from drayman.cluster.client import Client as Client
    from drayman.cluster.client import Page as Page
    from drayman.cluster.event_buffer import Reference as Reference
    from drayman.cluster.informer import Informer as Informer
    from drayman.cluster.informer import Notice as Notice
    from drayman.cluster.informer import Selection as Selection
    from drayman.cluster.informers import Informers as Informers
    from drayman.cluster.inprocess import InProcessClient as InProcessClient
    from drayman.cluster.kube.client import HttpClient as HttpClient
    from drayman.cluster.leading import Election as Election
    from drayman.cluster.leading import LeaderElector as LeaderElector
    from drayman.cluster.options import DeleteOptions as DeleteOptions
    from drayman.cluster.options import GetOptions as GetOptions
    from drayman.cluster.options import ListOptions as ListOptions
    from drayman.cluster.options import WatchOptions as WatchOptions
    from drayman.cluster.options import WriteOptions as WriteOptions
    from drayman.cluster.patches import Patch as Patch
    from drayman.cluster.patches import apply_patch as apply_patch
    from drayman.cluster.patches import json_patch as json_patch
    from drayman.cluster.patches import merge_patch as merge_patch
    from drayman.cluster.patches import strategic_merge_patch as strategic_merge_patch
    from drayman.cluster.recording import EventRecorder as EventRecorder
    from drayman.cluster.resources import Resource as Resource
    from drayman.cluster.resources import generic as generic
    from drayman.cluster.resources import typed as typed
    from drayman.cluster.watching import Bookmark as Bookmark
    from drayman.cluster.watching import Change as Change
    from drayman.cluster.workqueue import WorkQueue as WorkQueue
    from drayman.cluster.writes import BindWrite as BindWrite
    from drayman.cluster.writes import CreateWrite as CreateWrite
    from drayman.cluster.writes import DeleteWrite as DeleteWrite
    from drayman.cluster.writes import PartsWrite as PartsWrite
    from drayman.cluster.writes import PatchWrite as PatchWrite
    from drayman.cluster.writes import RemoveWrite as RemoveWrite

_NAMES: Final = {
    "backend": "Backend",
    "backoff": "Backoff",
    "client": "Client Page",
    "event_buffer": "Reference",
    "informer": "Informer Notice Selection",
    "informers": "Informers",
    "inprocess": "InProcessClient",
    "kube.client": "HttpClient",
    "leading": "Election LeaderElector",
    "options": "DeleteOptions GetOptions ListOptions WatchOptions WriteOptions",
    "patches": "Patch apply_patch json_patch merge_patch strategic_merge_patch",
    "recording": "EventRecorder",
    "resources": "Resource generic typed",
    "watching": "Bookmark Change",
    "workqueue": "WorkQueue",
    "writes": "BindWrite CreateWrite DeleteWrite PartsWrite PatchWrite RemoveWrite",
}
_HOMES: Final = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
