"""All that a cluster state consists of, in a form that compares equal when it is the same.

It looks at every attribute of every object, so that a new one is compared without anybody thinking of it. Left out is, by name, what
only ever grows and what is worked out anew when it is missing.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from drayman.api.struct import ApiStruct
from drayman.placement.fit import PodNeeds
from drayman.placement.state import ClusterState

_LEFT_OUT: Final[Mapping[str, frozenset[str]]] = {
    "ClusterState": frozenset({"_wake", "static_verdicts", "nodes"}),
    "Marks": frozenset({"_latest", "epoch", "floating_taken", "floating_freed"}),
    "Ledger": frozenset({"clock", "_changes"}),
    "_PoolRecord": frozenset({"revision", "_changes", "_forgotten"}),
    "Inventory": frozenset(
        {
            *("_clock", "_other_events", "_local_revision", "_foreign_clock"),
            *("_foreign_problems", "_foreign_unknown", "_selectors", "_numbering"),
            *("_nodes", "_visible", "_foreseen"),
        }
    ),
    "Pool": frozenset({"_features"}),
    "SliceRecord": frozenset({"_records", "_places"}),
    "Place": frozenset({"revision"}),
    "NodeUsage": frozenset({"revision"}),
    "Neighbourhood": frozenset({"_tallies"}),
    "Crowd": frozenset({"labels"}),
    "GangBook": frozenset({"_read", "_changes"}),
    "Declarations": frozenset({"change", "_flaws", "_flawed"}),
    "QueueBook": frozenset(
        {
            *("_find_claim", "_find_template", "_shares", "revision", "_kept_tree", "_kept_sums"),
            *("uses", "_used_at"),
        }
    ),
    "MixBook": frozenset(
        {"_holders", "_find", "_needs_of", "_news", "_is_current", "_wishes", "_mix"}
    ),
    "Topologies": frozenset({"revision"}),
}


def everything(state: ClusterState) -> Any:
    """Nodes have an order, the order of their arrival. Other mappings have none."""
    return _of(state, {}), list(state.nodes)


def _of(value: Any, seen: dict[int, Any]) -> Any:
    if isinstance(value, (ApiStruct, PodNeeds, str, int, float, types.NoneType)):
        return value
    if id(value) in seen:
        return "as above"
    if isinstance(value, Mapping):
        entries = {_key(key): _of(each, seen) for key, each in value.items()}
        # An index may keep an empty place for what was there once.
        return {key: each for key, each in entries.items() if each not in ({}, frozenset())}
    if isinstance(value, (set, frozenset)):
        return frozenset(_key(each) for each in value)
    if isinstance(value, (list, tuple)):
        return [_of(each, seen) for each in value]
    if type(value).__module__.startswith("drayman."):
        if not isinstance(value, msgspec.Struct):
            seen = {**seen, id(value): value}
        left_out = _LEFT_OUT.get(type(value).__name__, frozenset())
        found = {
            name: _of(getattr(value, name), seen)
            for name in _attributes(value)
            if name not in left_out
        }
        return {name: each for name, each in found.items() if each not in ({}, frozenset())}
    return value


def _attributes(value: Any) -> Iterator[str]:
    if isinstance(value, msgspec.Struct):
        yield from value.__struct_fields__
        return
    for kind in type(value).__mro__:
        yield from (name for name in getattr(kind, "__slots__", ()) if hasattr(value, name))
    yield from getattr(value, "__dict__", {})


def _key(key: Any) -> Any:
    """Places and crowds are the same if they are about the same, though they are other objects."""
    kind = type(key).__name__
    return (kind, repr(key.key)) if kind == "Place" else key
