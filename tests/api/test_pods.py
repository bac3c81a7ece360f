"""Facts about a pod."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from drayman.api.core import (
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
)
from drayman.api.meta import ObjectMeta
from drayman.api.pods import (
    claim_of,
    entries_of,
    entry_claims,
    group_key,
    has_claims,
    is_active,
    is_done,
    is_finished,
    is_leaving,
    named_claims,
    priority_of,
    statuses_with,
    unmade_entries,
    used_claims,
)

NAMED = PodResourceClaim(name="named", resource_claim_name="mine")
MADE = PodResourceClaim(name="made", resource_claim_template_name="template")
UNNEEDED = PodResourceClaim(name="unneeded", resource_claim_template_name="template")
UNMADE = PodResourceClaim(name="unmade", resource_claim_template_name="template")
ENTRIES = (NAMED, MADE, UNNEEDED, UNMADE)
STATUSES = (
    PodResourceClaimStatus(name="made", resource_claim_name="pod-made-x"),
    PodResourceClaimStatus(name="unneeded"),
)
USER = Pod(
    spec=PodSpec(resource_claims=ENTRIES), status=PodStatus(resource_claim_statuses=STATUSES)
)


def test_claims_of_the_entries() -> None:
    """An entry names its claim, or its status does; it may need none, or wait for one."""
    assert entry_claims(USER) == [
        (NAMED, "mine"),
        (MADE, "pod-made-x"),
        (UNNEEDED, ""),
        (UNMADE, None),
    ]
    assert [claim_of(USER, entry) for entry in ENTRIES] == ["mine", "pod-made-x", "", None]
    assert named_claims(USER) == ["mine", "pod-made-x"]
    assert unmade_entries(USER) == (UNMADE,)
    assert entries_of(USER, "pod-made-x") == (MADE,)
    assert entries_of(USER, "") == (UNNEEDED,)


def test_the_claim_for_extended_resources_is_used_too() -> None:
    """No entry names it, but the pod uses it."""
    status = PodStatus(
        extended_resource_claim_status=PodExtendedResourceClaimStatus(resource_claim_name="more")
    )
    pod = Pod(status=status)
    assert used_claims(pod) == ["more"]
    assert named_claims(pod) == []
    assert has_claims(pod)
    assert not has_claims(Pod())


entries = st.lists(
    st.builds(
        PodResourceClaim,
        name=st.sampled_from("abcdef"),
        resource_claim_name=st.none() | st.sampled_from(("x", "y")),
        resource_claim_template_name=st.none() | st.just("t"),
    ),
    unique_by=lambda entry: entry.name,
)
made = st.dictionaries(st.sampled_from("abcdef"), st.none() | st.sampled_from(("x", "z")))


@given(entries, made, made)
def test_what_is_made_is_found(
    given_entries: list[PodResourceClaim],
    before: dict[str, str | None],
    new: dict[str, str | None],
) -> None:
    """A status with claims that were made says so of each entry from a template, and keeps what it said of others."""
    pod = Pod(spec=PodSpec(resource_claims=tuple(given_entries)))
    for claims in (before, new):
        statuses = statuses_with(pod, claims)
        assert [status.name for status in statuses] == sorted({s.name for s in statuses})
        pod = replace(pod, status=replace(pod.status, resource_claim_statuses=statuses))
    for entry, name in entry_claims(pod):
        assert claim_of(pod, entry) == name
        said = {**before, **new}
        if entry.resource_claim_name is not None:
            assert name == entry.resource_claim_name
        elif entry.name in said:
            assert name == (said[entry.name] or "")
        else:
            assert name is None
    assert set(named_claims(pod)) == {name for _, name in entry_claims(pod) if name}
    assert not {entry.name for entry in unmade_entries(pod)} & {*before, *new}


LIVES = {
    # phase, deleted, on a node: finished, leaving, active, done
    "waits": (("Pending", False, False), (False, False, True, False)),
    "runs": (("Running", False, True), (False, False, True, False)),
    "has ended": (("Succeeded", False, True), (True, False, False, True)),
    "has failed": (("Failed", False, True), (True, False, False, True)),
    "is stopped": (("Running", True, True), (False, True, False, False)),
    "was deleted before it had a node": (("Pending", True, False), (False, True, False, True)),
    "has ended and is deleted": (("Failed", True, True), (True, True, False, True)),
    "is of no phase": (("", False, False), (False, False, True, False)),
}


@pytest.mark.parametrize(("pod", "facts"), LIVES.values(), ids=LIVES)
def test_lives(pod: tuple[str, bool, bool], facts: tuple[bool, ...]) -> None:
    """Whether a pod is finished, leaving, active or done follows from its phase, its deletion and its node."""
    phase, deleted, placed = pod
    value = Pod(
        metadata=ObjectMeta(deletion_timestamp="2024-01-01T00:00:00Z" if deleted else None),
        spec=PodSpec(node_name="n" if placed else ""),
        status=PodStatus(phase=phase),
    )
    assert (is_finished(value), is_leaving(value), is_active(value), is_done(value)) == facts


def test_priority_and_group() -> None:
    """A pod without a priority counts as 0, and one that names no group is in none."""
    plain = Pod(metadata=ObjectMeta(namespace="ns"))
    assert priority_of(plain) == 0
    assert group_key(plain) is None
    spec = PodSpec(priority=-5, scheduling_group=PodSchedulingGroup(pod_group_name="gang"))
    grouped = replace(plain, spec=spec)
    assert priority_of(grouped) == -5
    assert group_key(grouped) == ("ns", "gang")
    unnamed = replace(plain, spec=PodSpec(scheduling_group=PodSchedulingGroup()))
    assert group_key(unnamed) is None
