"""Subresources with their own behaviour: bind, evict, scale, and those that reach into a running pod."""

from drayman.apiserver.subresources.binding import BINDING, BINDINGS
from drayman.apiserver.subresources.connect import ATTACH, EXEC, LOG, PORT_FORWARD, PROXY
from drayman.apiserver.subresources.eviction import EVICTION
from drayman.apiserver.subresources.scale import ScalePaths, scale_subresource

__all__ = [
    "ATTACH",
    "BINDING",
    "BINDINGS",
    "EVICTION",
    "EXEC",
    "LOG",
    "PORT_FORWARD",
    "PROXY",
    "ScalePaths",
    "scale_subresource",
]
