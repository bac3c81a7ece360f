"""Which pods on a node preemption may count on to go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.pods import is_finished
from drayman.api.resource import ResourceClaim
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Handlers, Informers
from drayman.cluster.resources import PODS, RESOURCE_CLAIMS
from drayman.inventory.features import Features
from drayman.placement.claims import pods_holding
from drayman.placement.state import ClusterState
from drayman.scheduler.occupants import Occupants
from scheduler.laws.watches import Watches
from steps import steps_of

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


# Claims that no pod uses any more.


class Shown:
    """What a server shows of pods and their claims, and what is known of it."""

    def __init__(self) -> None:
        self.watches = Watches()
        self.state = ClusterState(Features(), lambda _: None)
        handlers = Handlers(self.watches)  # type: ignore[arg-type]
        handlers.add(RESOURCE_CLAIMS, self._follow)
        self.occupants = Occupants(handlers, self.state, lambda _: False)
        self._version = 0
        self._pods = self.watches.informer(PODS).cache

    def _follow(self, notice: Notice[ResourceClaim]) -> None:
        if notice.type == "DELETED":
            self.state.remove_claim(notice.object)
        else:
            self.state.set_claim(notice.object)

    def _metadata(self, name: str, uid: str = "") -> dict[str, Any]:
        self._version += 1
        return {
            "name": name,
            "namespace": "default",
            "uid": uid or name,
            "resourceVersion": str(self._version),
        }

    def pod(self, name: str, *, phase: str = "Running", uid: str = "", gone: bool = False) -> None:
        value = {
            "metadata": self._metadata(name, uid),
            "spec": {"nodeName": "n0", "containers": [{"name": "c"}]},
            "status": {"phase": phase},
        }
        self._push(PODS, convert(Pod, value), gone)

    def claim(
        self, name: str, *users: str, held: bool = True, resource: str = "pods", gone: bool = False
    ) -> None:
        result = {"request": "r", "driver": "d", "pool": "p", "device": name}
        allocation = {"devices": {"results": [result]}}
        reserved = [{"resource": resource, "name": each, "uid": each} for each in users]
        status = {"reservedFor": reserved, **({"allocation": allocation} if held else {})}
        value = {"metadata": self._metadata(name), "spec": {}, "status": status}
        self._push(RESOURCE_CLAIMS, convert(ResourceClaim, value), gone)

    def _push(self, resource: Any, value: Any, gone: bool) -> None:
        self.watches.push(resource, Notice("DELETED" if gone else "ADDED", value))
        self.watches.deliver(resource, 1)

    def unused(self) -> set[str]:
        return {claim.metadata.name for claim in self.occupants.unused_claims()}

    def unused_of_all(self) -> set[str]:
        """The same by looking at every claim."""
        there = {pod.metadata.uid for pod in self._pods if not is_finished(pod)}
        return {
            claim.metadata.name
            for claim in self.state.allocated_claims()
            if (users := pods_holding(claim)) and not any(user.uid in there for user in users)
        }


names = st.sampled_from(["a", "b", "c"])
moves = st.one_of(
    st.tuples(st.just("pod"), names, st.sampled_from(["Running", "Succeeded"])),
    st.tuples(st.just("pod gone"), names),
    st.tuples(st.just("replaced"), names),
    st.tuples(st.just("claim"), names, st.frozensets(names, max_size=2), st.booleans()),
    st.tuples(st.just("group claim"), names),
    st.tuples(st.just("claim gone"), names),
    st.just(("look",)),
)


@given(st.lists(moves, max_size=25))
def test_claims_without_users_are_known_without_a_search(steps: list[tuple[Any, ...]]) -> None:
    """They are those that a look at every claim finds, in whichever order pods and claims come, change and go."""
    shown = Shown()
    for what, *more in steps:
        if what == "pod":
            shown.pod(more[0], phase=more[1])
        elif what == "pod gone":
            shown.pod(more[0], gone=True)
        elif what == "replaced":
            shown.pod(more[0], gone=True)
            shown.pod(more[0], uid=f"{more[0]}-2")
        elif what == "claim":
            shown.claim(more[0], *sorted(more[1]), held=more[2])
        elif what == "group claim":
            shown.claim(more[0], "g", resource="podgroups")
        elif what == "claim gone":
            shown.claim(more[0], gone=True)
        else:
            assert shown.unused() == shown.unused_of_all()
    assert shown.unused() == shown.unused_of_all()


def test_a_search_for_victims_does_not_look_at_all_claims() -> None:
    """What it costs to know the claims without users does not depend on how many have some."""

    def steps(number: int) -> int:
        shown = Shown()
        for each in range(number):
            shown.pod(f"p{each}")
            shown.claim(f"c{each}", f"p{each}")
        shown.pod("p0", gone=True)
        assert shown.unused() == {"c0"}
        return steps_of(shown.unused)

    assert steps(160) == steps(10)
