"""A refusal is explained when it is reported, which may be long after it was decided, on a cluster that has changed since.

Whatever has changed, there is an explanation, and it is one of two: why the nodes of this moment refuse what the pod asked for, or what
the nodes said then, with the note that one of them would take the pod now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from drayman.placement.claims import ClaimsNotReadyError
from drayman.placement.decision.deciding import Decider, Round
from drayman.placement.decision.outcomes import Fitting, NoNode
from drayman.placement.demand import Demand
from drayman.placement.fit import refused_everywhere, unschedulable_message
from drayman.reasons.headline import headline
from drayman.scheduler.cycle import Refused
from oracle.build import device_class, piece
from scheduler.laws.fleet import Fleet, crowded, fleets, neighbourly
from scheduler.laws.play import BINDING_TIMEOUT_S, Play
from scheduler.test_cycle import ALLOCATABLE, Desk
from scheduler.test_laws import Move

CHANGED: Final = "The cluster has changed since"


def set_node(at: Desk, name: str, **spec: Any) -> None:
    value = {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": ALLOCATABLE}}
    at.state.set_node(convert(Node, value))


def one_refusal(*slices: dict[str, Any], claims: int = 1, count: int = 1) -> tuple[Desk, Refused]:
    """A pod with claims for GPUs, refused by both nodes."""
    at = Desk(*slices)
    for number in range(claims):
        at.claim(f"claim-{number}", count)
    at.pod("p", *(f"claim-{number}" for number in range(claims)))
    (refused,) = at.decide().refused
    return at, refused


def own(name: str, devices: int) -> dict[str, Any]:
    """The slice of a node."""
    return piece([f"d{n}" for n in range(devices)], pool=name, name=name, nodeName=name)


def cordoned() -> tuple[Desk, Refused]:
    at = Desk(own("n0", 2), own("n1", 2))
    for name in ("n0", "n1"):
        set_node(at, name, unschedulable=True)
    at.claim("claim-0")
    at.pod("p", "claim-0")
    (refused,) = at.decide().refused
    return at, refused


def too_many() -> tuple[Desk, Refused]:
    return one_refusal(own("n0", 1), own("n1", 1), count=2)


def two_claims() -> tuple[Desk, Refused]:
    return one_refusal(own("n0", 1), claims=2)


def uncordon(at: Desk) -> None:
    set_node(at, "n0")


def add_a_node(at: Desk) -> None:
    set_node(at, "n2")
    at.state.set_slice(convert(ResourceSlice, own("n2", 4)))


def remove_nodes(at: Desk) -> None:
    for name in ("n0", "n1"):
        at.state.remove_node(name)


def remove_slices(at: Desk) -> None:
    for name in ("n0", "n1"):
        at.state.remove_slice(convert(ResourceSlice, own(name, 1)))


def remove_the_class(at: Desk) -> None:
    at.state.remove_class(convert(DeviceClass, device_class("gpu")))


def remove_a_claim(at: Desk) -> None:
    at.state.remove_claim(claim_of(at, "claim-1"))


def replace_a_claim(at: Desk) -> None:
    """By another of its name that wants nothing."""
    known = claim_of(at, "claim-0")
    at.state.remove_claim(known)
    metadata = {"name": "claim-0", "namespace": "default", "uid": "other", "resourceVersion": "99"}
    at.state.set_claim(convert(ResourceClaim, {"metadata": metadata}))


def claim_of(at: Desk, name: str) -> ResourceClaim:
    found = at.state.find_claim("default", name)
    assert found is not None
    return found


_NO_NODE: Final = "0/2 nodes are available:"
CASES: Final[dict[str, tuple[Callable[[], tuple[Desk, Refused]], Callable[[Desk], None], str]]] = {
    "nothing": (
        cordoned,
        lambda _: None,
        f"{_NO_NODE} 2 node(s) were unschedulable. NodesCordoned (held): 2 nodes that could serve"
        " claim claim-0 are cordoned.",
    ),
    "a node is uncordoned": (
        cordoned,
        uncordon,
        f"{_NO_NODE} 2 node(s) were unschedulable. {CHANGED}: node n0 would take the pod, which is"
        " about to be tried again.",
    ),
    "a larger node comes": (
        too_many,
        add_a_node,
        f"{_NO_NODE} 2 cannot allocate all claims. {CHANGED}: node n2 would take the pod, which is"
        " about to be tried again.",
    ),
    "the nodes go": (
        too_many,
        remove_nodes,
        "no nodes available to schedule pods. NoNodes (never): The cluster has no nodes.",
    ),
    "the devices go": (
        too_many,
        remove_slices,
        f"{_NO_NODE} 2 cannot allocate all claims. NoDevices (never): Claim claim-0, request r wants"
        " 2 devices; no node publishes any.",
    ),
    "the class goes": (
        too_many,
        remove_the_class,
        f"{_NO_NODE} request r: device class gpu does not exist. ClassMissing (never): Claim claim-0,"
        " request r: device class gpu does not exist.",
    ),
    "one of two claims goes": (
        two_claims,
        remove_a_claim,
        f"{_NO_NODE} 2 cannot allocate all claims.",
    ),
    "a claim is replaced by one that wants less": (two_claims, replace_a_claim, CHANGED),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_reported_after_a_change(name: str) -> None:
    """Reports come after a pause: what has happened meanwhile is in them, or they say that something has."""
    refuse, change, expected = CASES[name]
    at, refused = refuse()
    change(at)
    assert expected in refused.message


_CHANGES: Final = (
    "switch_node", "switch_node", "cordon_node", "switch_slice", "change_slice", "switch_class",
    "switch_rule", "remove_pod", "release", "place_by_hand", "relabel_pod", "shrink_pod",
    "label_namespace", "replace_claim", "replace_claim", "write", "pass_time", "decide",
)  # fmt: skip


def scripts() -> st.SearchStrategy[list[Move]]:
    """Pods that are decided about, then changes that the scheduler sees at once."""
    numbers = st.integers(0, 23)
    creating = st.lists(st.tuples(st.just("create_pod"), numbers), min_size=2, max_size=8)
    changing = st.lists(st.tuples(st.sampled_from(_CHANGES), numbers), min_size=3, max_size=20)
    return st.builds(
        lambda first, rest: [*first, ("deliver_all", 0), ("decide", 7), *rest], creating, changing
    )


def said_by_nodes(round_: Round, demand: Demand) -> NoNode | Fitting:
    """What nodes say now to a pod that was refused with this demand."""
    try:
        claims = round_.claims(demand.pod)
    except ClaimsNotReadyError:
        claims = demand.claims
    return round_.consider_nodes(round_.demand_with(demand.pod, claims))


def expected(play: Play, refused: NoNode) -> str:
    """What a scheduler that has kept nothing would say."""
    state, pod = play.state, refused.demand.pod
    decider = Decider(state, nominations=play.nominations, binding_timeout_s=BINDING_TIMEOUT_S)
    now = said_by_nodes(decider.round(play.now), refused.demand)
    if isinstance(now, Fitting):
        return f" {CHANGED}: node "
    demand, total = now.demand, len(state.nodes)
    opening = unschedulable_message(total, now.not_found.verdicts.values())
    if demand.impossible is not None:
        opening = refused_everywhere(total, demand.impossible)
    with play.nominations.as_seen_by(pod):
        return f"{opening} {headline(state, demand, now.not_found)}"


def copies(play: Play, pod: Pod) -> list[Pod]:
    """Other pods, some of which sleep for the same reason and some of which do not."""
    return [other for other in play.pods.values() if other.metadata.uid != pod.metadata.uid][:4]


@given(st.one_of(fleets(), crowded(), neighbourly()), scripts())
def test_a_refusal_can_be_explained_at_any_later_time(fleet: Fleet, script: list[Move]) -> None:
    """As a scheduler would that decides now, or with the note that the pod would be placed now."""
    play = Play(fleet)
    play.deliver_all()
    for name, argument in script:
        getattr(play, name)(argument)
        play.deliver_all()
        for refused in play.refused[argument % 3 :: 3]:
            text = refused.message
            assert "\x00" not in text
            if isinstance(refused.why, NoNode):
                event(text.partition(" (")[0].rpartition(" ")[2])
                assert expected(play, refused.why) in text
            if refused.by_nodes is not None:
                others = copies(play, refused.entry.pod)
                for _, explain in refused.by_nodes.copies(others):
                    assert "\x00" not in explain()
