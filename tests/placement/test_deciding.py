"""What holds for decisions in general: a question changes nothing, a decision does what was announced, and it can be taken back."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import ResourceClaim
from drayman.placement.claims import ClaimLack
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.outcomes import BeingWritten, Fitting, Lacking, NoNode, Outcome
from drayman.placement.decision.placements import Placement, take_back
from drayman.placement.fit import FITS, Cause
from drayman.placement.state import ClusterState
from drayman.placement.world import state_of
from drayman.reasons.node_fit import NodeFit
from simulate.cluster import NOW, claim, cluster, node, pod

NODES = ("a", "b", "c")
ZONE = "topology.kubernetes.io/zone"
SHARED = ("c1", "c2")
OF_GROUP = convert(
    ResourceClaim,
    {
        "metadata": {"name": "c", "namespace": "default"},
        "status": {
            "reservedFor": [
                {
                    "apiGroup": "scheduling.k8s.io",
                    "resource": "podgroups",
                    "name": "g",
                    "uid": "g",
                }
            ]
        },
    },
)


def away_from_its_like() -> dict[str, Any]:
    selector = {"matchLabels": {"app": "s"}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": required}, "metadata": {"labels": {"app": "s"}}}


WISHES = st.sampled_from(
    [
        {},
        {"cpu": "12"},
        {"nodeSelector": {ZONE: "x"}},
        {"schedulingGroup": {"podGroupName": "g"}},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]},
        away_from_its_like(),
    ]
)
CLAIMS = st.sampled_from(
    [{}, {"template": "one"}, {"template": "two"}, *({"claim": name} for name in (*SHARED, "none"))]
)
PODS = st.lists(st.tuples(WISHES, CLAIMS), min_size=1, max_size=6)
DEVICES = st.lists(st.integers(0, 3), min_size=3, max_size=3)


def town(devices: list[int]) -> ClusterState:
    """Three nodes with so many devices, two claims that pods can share, and a group."""
    nodes = tuple(
        node(name, labels={ZONE: zone}) for name, zone in zip(NODES, ("x", "y", "y"), strict=True)
    )
    group = {"metadata": {"name": "g", "namespace": "default", "uid": "g"}, "spec": {}}
    claims = tuple(claim(name, count) for count, name in enumerate(SHARED, 1))
    given_ = dict(zip(NODES, devices, strict=True))
    groups = (convert(PodGroup, group),)
    return state_of(cluster(given_, nodes=nodes, claims=claims, pod_groups=groups).objects)


def pods(asked: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[Pod]:
    return [pod(f"p{n}", **wishes, **claims) for n, (wishes, claims) in enumerate(asked)]


def facts(state: ClusterState) -> object:
    """Everything that a decision may change, as far as anybody can ask."""
    found = [state.find_claim("default", name) for name in SHARED]
    return (
        {name: (sorted(n.usage.pods), n.usage.room_key) for name, n in state.nodes.items()},
        {n: state.view(known).usage.in_use for n, known in state.nodes.items()},
        [(c, c is not None and state.is_under_way(c)) for c in found],
        state.gangs.uses_alone(pod("none", schedulingGroup={"podGroupName": "g"}), OF_GROUP),
    )


def summary(outcome: Outcome | Fitting) -> object:
    """An outcome in values that can be compared."""
    match outcome:
        case Lacking(error):
            return "lacks", error.lack, error.name
        case NoNode(_, not_found):
            return "no node", {name: v.cause for name, v in not_found.verdicts.items()}
        case Fitting(_, found):
            plan = () if found.plan is None else found.plan.claims
            return found.node.facts.name, sorted(_devices(*(item.allocation for item in plan)))
        case Placement():
            return outcome.node, sorted(_devices(*outcome.devices))
        case _:
            return type(outcome).__name__


def _devices(*allocations: Any) -> list[str]:
    return [f"{r.pool}/{r.device}" for a in allocations for r in a.devices.results]


@given(DEVICES, PODS)
def test_a_decision_does_what_a_question_announced(
    devices: list[int], asked: list[tuple[dict[str, Any], dict[str, Any]]]
) -> None:
    """To ask first changes nothing, and the answer is what is decided then: the node and devices, or why there are none."""
    state = town(devices)
    round_ = Decider(state).round(NOW)
    for each in pods(asked):
        before = facts(state)
        announced = summary(round_.consider(each))
        assert facts(state) == before
        assert summary(round_.decide(each)) == announced


@given(DEVICES, PODS, PODS)
def test_decisions_are_taken_back_together(
    devices: list[int],
    before: list[tuple[dict[str, Any], dict[str, Any]]],
    unit: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    """Pods that are decided about one after the other and taken back leave no trace, and are then decided about in the same way."""
    state = town(devices)
    decider = Decider(state)
    for each in pods(before):
        decider.round(NOW).decide(each)
    known = facts(state)
    together = [pod(f"u{n}", **wishes, **claims) for n, (wishes, claims) in enumerate(unit)]
    first = _decided(decider, state, together)
    assert facts(state) == known
    assert _decided(decider, state, together) == first


def _decided(decider: Decider, state: ClusterState, together: list[Pod]) -> list[object]:
    round_ = decider.round(NOW)
    outcomes = [round_.decide(each) for each in together]
    for outcome in reversed(outcomes):
        if isinstance(outcome, Placement):
            take_back(state, outcome)
    return [summary(outcome) for outcome in outcomes]


@given(DEVICES, PODS)
def test_a_node_says_the_same_however_it_is_asked(
    devices: list[int], asked: list[tuple[dict[str, Any], dict[str, Any]]]
) -> None:
    """To the search for the best node, to who asks for its verdict, what it would give or why not, and to who explains."""
    state = town(devices)
    round_ = Decider(state).round(NOW)
    for each in pods(asked):
        outcome = round_.consider(each)
        if isinstance(outcome, Fitting | NoNode):
            demand = outcome.demand
            placer, fit = round_.placer(demand), NodeFit(state, demand)
            refusing = set(placer.refusals(demand))
            standing = {each.node.facts.name for each in placer.standings(demand)}
            assert standing == set(state.nodes) - refusing
            for name in state.nodes if demand.only_node is None else ():
                known = state.nodes[name]
                verdict, unfit = placer.verdict_on(demand, known), fit.of(known)
                assert (
                    (verdict is FITS)
                    == (placer.found_on(demand, known) is not None)
                    == (name in standing)
                )
                before_devices = verdict is not FITS and verdict.cause < Cause.CLASS_MISSING
                assert (unfit is not None and unfit.cause is verdict.cause) == before_devices
        round_.decide(each)


def test_a_claim_is_relied_on_within_a_round_only() -> None:
    """Two pods of one round share what it allocates; a pod of the next round waits until that is written."""
    state = town([1, 0, 0])
    decider = Decider(state)
    round_ = decider.round(NOW)
    placed = [round_.decide(pod(name, claim="c1")) for name in ("first", "second")]
    assert all(isinstance(each, Placement) for each in placed)
    later = decider.round(NOW).decide(pod("third", claim="c1"))
    assert isinstance(later, BeingWritten)
    assert later.claim.metadata.name == "c1"


def test_claims_that_are_not_ours_to_make_are_lacking() -> None:
    """A template stands for a claim only where claims are made; elsewhere the pod waits for its controller."""
    state = town([1, 0, 0])
    asked = pod("p", "one")
    assert isinstance(Decider(state).round(NOW).consider(asked), Fitting)
    others = Decider(state, makes_claims_of=lambda _: False).round(NOW).consider(asked)
    assert isinstance(others, Lacking)
    assert (others.error.lack, others.error.name) == (ClaimLack.GENERATED, "one")
