"""Which pods on a node preemption may count on to go."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.cluster.informers import Handlers, Informers
from drayman.cluster.resources import PODS
from drayman.inventory.features import Features
from drayman.placement.state import ClusterState
from drayman.scheduler.occupants import Occupants

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
PRIORITY = 5

CASES: dict[str, tuple[dict[str, Any], bool, bool]] = {
    "a less important pod": ({"priority": 4}, False, True),
    "an equal": ({"priority": 5}, False, False),
    "an equal that is being deleted": (
        {"priority": 5, "deleted": "2027-01-15T08:00:10Z"},
        False,
        True,
    ),
    "an equal that has been asked to go": ({"priority": 5}, True, True),
    "one that should have been gone long ago": (
        {"priority": 4, "deleted": "2027-01-15T07:00:00Z"},
        False,
        False,
    ),
    "one that counts on another node": ({"priority": 4, "counts_on": "n1"}, False, False),
}


@pytest.mark.parametrize(("fields", "is_asked", "wanted"), CASES.values(), ids=CASES)
def test_a_node_is_worth_a_look_if_a_pod_on_it_may_go(
    fields: dict[str, Any], is_asked: bool, wanted: bool
) -> None:
    """The first glance at a node and the search for victims there go by the same pods."""
    state = ClusterState(Features(), lambda _: None)
    informers = Informers(None)  # type: ignore[arg-type]
    occupants = Occupants(Handlers(informers), state, lambda _: is_asked)
    shown = make_pod("n0", **fields)
    informers.informer(PODS).cache.put(("default", "p"), shown)
    state.set_placed_pod(make_pod(fields.get("counts_on", "n0"), **fields))
    assert occupants.has_evictable("n0", PRIORITY, NOW) == wanted
    found = occupants.on("n0", NOW)
    assert any(each.is_leaving or each.priority < PRIORITY for each in found) == wanted


def make_pod(node: str, *, priority: int, deleted: str | None = None, **_: Any) -> Pod:
    metadata = {"name": "p", "namespace": "default", "uid": "p", "deletionTimestamp": deleted}
    spec = {"nodeName": node, "priority": priority, "containers": [{"name": "c"}]}
    return convert(Pod, {"metadata": metadata, "spec": spec})
