"""What holds for the scheduler on any cluster, whatever happens in whatever order.

Every decision is valid by a judge that knows neither the scheduler nor the allocator. Once everything has come to rest, a pod that still
waits is one that a plain search, node by node and from nothing, refuses too. And an answer that was kept is the answer that a new
search gives.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drayman.allocator import Policy
from drayman.api.codec import convert
from drayman.api.core import Namespace, Node, Pod
from drayman.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceSlice,
)
from drayman.inventory import allowance
from drayman.inventory.features import Features
from drayman.placement.claims import claims_of
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.outcomes import NoNode
from drayman.placement.demand import Demand, Demands
from drayman.placement.placing import Found, Placer
from drayman.placement.state import ClusterState
from scheduler.laws.fleet import Fleet, crowded, fleets, fragile, neighbourly
from scheduler.laws.play import BINDING_TIMEOUT_S, Play

Move = tuple[str, int]
_NUMBERS = st.integers(0, 23)
_QUIET = ("deliver", "deliver", "deliver_all", "decide", "decide", "write")
_EVENTS = (
    *_QUIET, *_QUIET, *_QUIET, *_QUIET, "create_pod", "create_pod", "remove_pod", "remove_pod",
    "switch_node", "cordon_node", "switch_slice", "change_slice", "switch_class", "switch_rule",
    "fail_write", "fail_write", "pass_time", "let_go", "let_go", "release",
)  # fmt: skip


def moves() -> st.SearchStrategy[list[Move]]:
    """Many pods at first, then whatever may happen."""
    create = st.tuples(st.just("create_pod"), _NUMBERS)
    event = st.tuples(st.sampled_from(_EVENTS), _NUMBERS)
    some = st.lists(create, min_size=1, max_size=8)
    more = st.lists(event, min_size=10, max_size=50)
    return st.builds(lambda first, rest: [*first, *rest], some, more)


def played(fleet: Fleet, script: list[Move], after: Callable[[Play], None]) -> Iterator[Play]:
    """The cluster at rest after all moves, and once more when everything that went has come back."""
    play = Play(fleet)
    play.deliver_all()
    for name, argument in script:
        getattr(play, name)(argument)
        after(play)
    play.settle()
    yield play
    play.restore()
    after(play)
    play.settle()
    yield play


def fresh_state(play: Play, instead: Mapping[str, ResourceClaim]) -> ClusterState:
    """The cluster as the server has it, read by somebody who has seen nothing before. Some claims may be other than they are."""
    state = ClusterState(Features(), lambda _: None)
    for namespace in play.namespaces.values():
        state.set_namespace(convert(Namespace, namespace))
    for node in play.nodes.values():
        state.set_node(convert(Node, node))
    for item in play.classes.values():
        state.set_class(convert(DeviceClass, item))
    for item in play.slices.values():
        state.set_slice(convert(ResourceSlice, item))
    for rule in play.rules.values():
        state.set_taint_rule(convert(DeviceTaintRule, rule))
    for name, claim in play.claims.items():
        state.set_claim(instead.get(name, claim))
    for pod in play.pods.values():
        if pod.spec.node_name:
            state.set_placed_pod(pod)
    return state


def waiting(play: Play) -> list[Pod]:
    return [pod for pod in play.pods.values() if not pod.spec.node_name]


def demand_of(state: ClusterState, pod: Pod, now: float) -> Demand:
    claims = claims_of(pod, state.find_claim)
    return Demands(state, BINDING_TIMEOUT_S).of(pod, claims, now)


def nodes_for(
    play: Play, pod: Pod, instead: Mapping[str, ResourceClaim] | None = None
) -> list[str]:
    """Nodes on which a plain search finds room for a pod."""
    state = fresh_state(play, instead or {})
    demand = demand_of(state, pod, play.now)
    if demand.impossible is not None:
        return []
    return [
        name
        for name, node in state.nodes.items()
        if Placer(state, Policy.BEST).found_on(demand, node) is not None
    ]


@given(fleets(), moves())
def test_what_waits_cannot_run_and_what_runs_may(fleet: Fleet, script: list[Move]) -> None:
    """Every placement passes the judge, and pods left pending fit nowhere in a cluster that is read anew, by a search or a decision."""
    check_what_waits(fleet, script)


@pytest.mark.parametrize("long", [1, 1_000_000])
@given(fleets(), moves(), st.sampled_from((1, 30, 500)))
def test_decisions_in_parts_are_decisions(
    long: int, fleet: Fleet, script: list[Move], part: int
) -> None:
    """The same holds if every decision is interrupted again and again, and selectors are evaluated between its parts."""
    with (
        patch.object(allowance, "PART", part),
        patch.object(allowance, "LONG", long),
    ):
        check_what_waits(fleet, script)


def check_what_waits(fleet: Fleet, script: list[Move]) -> None:
    for play in played(fleet, script, lambda _: None):
        for pod in waiting(play):
            assert pod.metadata.uid in play.queue, f"{pod.metadata.name} is forgotten"
            assert not nodes_for(play, pod), f"{pod.metadata.name} waits but fits"
            asked_anew = Decider(fresh_state(play, {})).round(play.now).consider(pod)
            assert isinstance(asked_anew, NoNode), f"{pod.metadata.name} waits but would be placed"


@given(fleets(), moves())
def test_kept_answers_are_those_of_a_new_search(fleet: Fleet, script: list[Move]) -> None:
    """A placer that has seen everything finds a node exactly when one that has seen nothing does.

    And the same node, unless nodes share devices: how good a node is then changes with what others take, and is not always known.
    """
    kept: dict[Hashable, Placer] = {}

    def compare(play: Play) -> None:
        for pod in waiting(play):
            if play.queue.get(pod.metadata.uid) is None or any(
                play.state.find_claim(pod.metadata.namespace, name) is None
                or play.state.is_under_way(play.claims[name])
                for name in _claim_names(pod)
            ):
                continue
            demand = demand_of(play.state, pod, play.now)
            placer = kept.setdefault(demand.key, Placer(play.state, Policy.BEST))
            old = placer.find(demand)
            new = Placer(play.state, Policy.BEST).find(demand)
            assert type(old) is type(new), f"{pod.metadata.name}: {old} but {new}"
            if isinstance(old, Found) and isinstance(new, Found) and not _has_floating(play):
                assert old.node.facts.name == new.node.facts.name

    for play in played(fleet, script, compare):
        compare(play)


def _has_floating(play: Play) -> bool:
    return any("nodeName" not in item["spec"] for item in play.fleet.slices)


def _claim_names(pod: Pod) -> list[str]:
    direct = [entry.resource_claim_name for entry in pod.spec.resource_claims]
    made = [status.resource_claim_name for status in pod.status.resource_claim_statuses]
    return [name for name in (*direct, *made) if name]


_CALM = ("write", "create_pod", "remove_pod", "fail_write", "let_go", "let_go", "release")


@given(
    crowded(),
    st.lists(st.sampled_from([0, 1]), min_size=2, max_size=6),
    st.lists(st.sampled_from([2, 3]), min_size=1, max_size=3),
    st.lists(st.tuples(st.sampled_from(_CALM), _NUMBERS), min_size=5, max_size=30),
)
def test_room_that_was_made_for_a_pod_is_there_when_it_comes(
    fleet: Fleet, running: list[int], urgent: list[int], script: list[Move]
) -> None:
    """Where hardware stays as it is and nobody is more important, a pod has others asked to go once at most, and nobody is asked twice.

    However late victims go, their claims are given back, writes are shown or fail, and whoever else is created or removed meanwhile.
    """
    play = Play(fleet)
    for kind in running:
        play.create_pod(kind)
    play.settle()
    for kind in urgent:
        play.create_pod(kind)
    for name, argument in script:
        if (
            argument % 4
        ):  # news and decisions come soon, but not always before the next thing happens
            play.deliver_all()
            play.decide(7)
        getattr(play, name)(argument)
    play.settle()
    preemptors = [pod.metadata.name for pod, _ in play.asked]
    victims = [victim.metadata.name for _, asked in play.asked for victim in asked]
    assert len(set(preemptors)) == len(preemptors), preemptors
    assert len(set(victims)) == len(victims), victims
    for pod, asked in play.asked:
        assert all((victim.spec.priority or 0) < (pod.spec.priority or 0) for victim in asked)
    for pod in waiting(play):
        assert not nodes_for(play, pod), f"{pod.metadata.name} waits but fits"


_NEIGHBOURLY = (
    "create_pod", "place_by_hand", "place_by_hand", "remove_pod", "remove_pod", "fail_write", "write",
    "relabel_pod", "relabel_pod", "relabel_pod", "shrink_pod", "label_namespace", "label_namespace", "switch_node",
)  # fmt: skip


@settings(max_examples=4 * settings.default.max_examples)
@given(neighbourly(), st.lists(st.tuples(st.sampled_from(_NEIGHBOURLY), _NUMBERS), max_size=20))
def test_nothing_waits_that_fits(fleet: Fleet, script: list[Move]) -> None:
    """Pods that want others near, far or spread run once other pods, their labels and their namespaces are as they want them.

    Most events come when everything is at rest, so that no other event wakes by chance what they should wake.
    """
    play = Play(fleet)
    for kind in range(len(fleet.kinds)):
        play.create_pod(kind)
    for name, argument in [*script, ("write", 0)]:
        getattr(play, name)(argument)
        if argument % 4 == 1:
            play.deliver_all()
            play.decide(7)
            continue
        play.settle()
        state = fresh_state(play, {})
        for pod in waiting(play):
            assert pod.metadata.uid in play.queue, f"{pod.metadata.name} is forgotten"
            asked_anew = Decider(state).round(play.now).consider(pod)
            assert isinstance(asked_anew, NoNode), f"{pod.metadata.name} waits but fits"


_FRAGILE = (
    "write", "write", "create_pod", "remove_pod", "fail_write", "switch_node", "cordon_node",
    "switch_slice", "fail_device", "fail_device", "make_ready", "free", "pass_time",
)  # fmt: skip


@given(
    fragile(),
    st.lists(_NUMBERS, min_size=1, max_size=5),
    st.lists(st.tuples(st.sampled_from(_FRAGILE), _NUMBERS), min_size=5, max_size=40),
)
def test_no_pod_sleeps_through_what_would_help_it(
    fleet: Fleet, first: list[int], script: list[Move]
) -> None:
    """After any order of failed devices and writes, back-offs, nodes and slices that come and go, who waits cannot run.

    Not even on devices of its own claims that failed, or that lie where the pod cannot go: nobody else uses those, so they are given
    back.
    """
    play = Play(fleet)
    for kind in first:
        play.create_pod(kind)
    for name, argument in script:
        if argument % 4:
            play.deliver_all()
            play.decide(7)
        getattr(play, name)(argument)
    play.settle()
    for pod in waiting(play):
        assert pod.metadata.uid in play.queue, f"{pod.metadata.name} is forgotten"
        alone = {
            name: msgspec.structs.replace(claim, status=ResourceClaimStatus())
            for name in _claim_names(pod)
            if (claim := play.claims.get(name)) is not None
            and all(user.uid == pod.metadata.uid for user in claim.status.reserved_for)
        }
        assert not nodes_for(play, pod, alone), f"{pod.metadata.name} waits but fits"
