"""Which decisions of a batch can be carried out apart: those that share no claim."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drayman.api.core import Pod
from drayman.api.meta import ObjectMeta
from drayman.api.resource import ResourceClaim
from drayman.placement.decision.placements import Placement
from drayman.placement.fit import PodNeeds
from drayman.scheduler.binding import _sharing


def placement(name: str, *claims: str) -> Placement:
    pod = Pod(metadata=ObjectMeta(name=name, uid=name))
    used = tuple(ResourceClaim(metadata=ObjectMeta(name=c, uid=c)) for c in claims)
    return Placement(pod, PodNeeds.of(pod), "node", used)


def grouped(*claims_of_pods: tuple[str, ...]) -> list[list[str]]:
    batch = [placement(f"p{n}", *claims) for n, claims in enumerate(claims_of_pods)]
    return [[item.pod.metadata.name for item in group] for group in _sharing(batch)]


def test_pods_without_common_claims_are_apart() -> None:
    """Each pod is its own group, in order."""
    assert grouped(("a",), ("b",), ()) == [["p0"], ["p1"], ["p2"]]


def test_pods_with_a_common_claim_are_together() -> None:
    """The write of the claim is one for all of them."""
    assert grouped(("a",), ("b",), ("a",)) == [["p0", "p2"], ["p1"]]


def test_a_pod_joins_groups() -> None:
    """A pod that shares with two makes one group of them."""
    (group,) = grouped(("a",), ("b",), ("a", "b"))
    assert sorted(group) == ["p0", "p1", "p2"]


@given(st.lists(st.lists(st.sampled_from("abcdef"), unique=True, max_size=3), max_size=8))
def test_groups_are_the_connected_parts(claims_of_pods: list[list[str]]) -> None:
    """Every pod is in exactly one group; no claim is in two; no group could be taken apart."""
    groups = grouped(*(tuple(claims) for claims in claims_of_pods))
    used = {f"p{n}": set(claims) for n, claims in enumerate(claims_of_pods)}
    assert sorted(name for group in groups for name in group) == sorted(used)
    for group in groups:
        reached, rest = {group[0]}, set(group[1:])
        while near := {n for n in rest if any(used[n] & used[m] for m in reached)}:
            reached |= near
            rest -= near
        assert not rest
    claims = [set().union(*(used[name] for name in group)) for group in groups]
    assert sum(map(len, claims)) == len(set().union(*claims))
