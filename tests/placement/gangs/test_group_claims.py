"""Claims that a group of pods shares."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import ResourceClaim
from drayman.placement.claims import shares
from drayman.placement.gangs.book import GangBook


def pod(name: str, *entries: dict[str, str], made: dict[str, str] | None = None) -> Pod:
    statuses = [{"name": key, "resourceClaimName": claim} for key, claim in (made or {}).items()]
    value: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"schedulingGroup": {"podGroupName": "g"}, "resourceClaims": list(entries)},
        "status": {"resourceClaimStatuses": statuses},
    }
    return convert(Pod, value)


def group(*entries: dict[str, str], namespace: str = "default") -> PodGroup:
    metadata = {"name": "g", "namespace": namespace, "uid": "u"}
    return convert(PodGroup, {"metadata": metadata, "spec": {"resourceClaims": list(entries)}})


def reserved_for(*users: dict[str, str]) -> ResourceClaim:
    metadata = {"name": "c", "namespace": "default"}
    return convert(ResourceClaim, {"metadata": metadata, "status": {"reservedFor": list(users)}})


def test_a_pod_has_a_claim_of_its_group_to_itself_until_others_are_placed() -> None:
    """And again when the last of them is gone. Pods count once, however often they are shown."""
    book = GangBook()
    user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u"}
    claim = reserved_for(user)
    book.place(pod("p"), "a")
    assert book.uses_alone(pod("p"), claim)
    for _ in range(2):
        book.place(pod("q"), "b")
        assert not book.uses_alone(pod("p"), claim)
    book.displace("q")
    assert book.uses_alone(pod("p"), claim)
    assert not book.uses_alone(pod("q"), claim)


def test_a_claim_of_others_is_not_used_alone() -> None:
    """Neither one that is reserved for another pod too, nor one of another group."""
    own = {"resource": "pods", "name": "p", "uid": "p"}
    assert GangBook().uses_alone(pod("p"), reserved_for(own))
    assert not GangBook().uses_alone(pod("p"), reserved_for(own, {**own, "uid": "q"}))
    other = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "h", "uid": "h"}
    assert not GangBook().uses_alone(pod("p"), reserved_for(other))


def test_the_group_of_a_pod_is_in_its_namespace() -> None:
    """A group of the same name elsewhere is another one, and one that is removed is no longer found."""
    book = GangBook()
    book.set_group(group(namespace="elsewhere"))
    assert book.pod_group_of(pod("p")) is None
    book.set_group(group())
    assert book.pod_group_of(pod("p")) == group()
    book.remove_group(group())
    assert book.pod_group_of(pod("p")) is None


BY_NAME = {"name": "e", "resourceClaimName": "c"}
BY_TEMPLATE = {"name": "e", "resourceClaimTemplateName": "t"}
SHARING: dict[str, tuple[Pod, PodGroup, bool]] = {
    "named by both": (pod("p", BY_NAME), group(BY_NAME), True),
    "under another entry": (pod("p", BY_NAME), group({**BY_NAME, "name": "f"}), False),
    "another claim": (pod("p", BY_NAME), group({**BY_NAME, "resourceClaimName": "d"}), False),
    "named by the pod only": (pod("p", BY_NAME), group(), False),
    "made from a template of both": (
        pod("p", BY_TEMPLATE, made={"e": "c"}),
        group(BY_TEMPLATE),
        True,
    ),
    "made from a template for another entry": (
        pod("p", BY_TEMPLATE, {**BY_TEMPLATE, "name": "own"}, made={"e": "d", "own": "c"}),
        group(BY_TEMPLATE),
        False,
    ),
    "not yet made": (pod("p", BY_TEMPLATE), group(BY_TEMPLATE), False),
}


@pytest.mark.parametrize("name", SHARING)
def test_which_claims_a_group_shares(name: str) -> None:
    """Name and source of the pod's entry and the group's are the same, and the entry stands for the claim."""
    of, known, wanted = SHARING[name]
    claim = convert(ResourceClaim, {"metadata": {"name": "c", "namespace": "default"}})
    assert shares(known, claim, of) is wanted
