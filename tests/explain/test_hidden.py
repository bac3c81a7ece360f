"""Somebody who may not see all that is in use is not told that it is free."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from drayman.api.core import Pod, PodCondition
from drayman.explain.answer import Explanation
from drayman.explain.hidden import hides_use
from drayman.explain.pod import PodHeadlines, explain_pod
from drayman.explain.promised import reserved_in
from drayman.placement.world import World
from drayman.reasons.reason import Reason
from explain.town import Town
from oracle.build import claim, exactly

OTHERS = ("pods outside of namespace default",)
OURS = (
    "0/1 nodes are available: 1 cannot allocate all claims. DevicesInUse (not now): All are in use."
)
THEIRS = "0/1 nodes are available: 1 cannot allocate all claims."


def waiting(said: str) -> tuple[World, Pod]:
    """A pod for which everything that is seen is free, and of which the scheduler has said something."""
    world = Town().node("node-a", 2).wants(claim(exactly("r", 1))).world()
    (pod,) = world.objects.pods
    condition = PodCondition(type_="PodScheduled", status="False", message=said)
    status = msgspec.structs.replace(pod.status, conditions=(condition,) if said else ())
    pod = msgspec.structs.replace(pod, status=status)
    return world.with_objects(replace(world.objects, pods=(pod,))), pod


def explained(said: str, unseen: tuple[str, ...]) -> Explanation:
    world, pod = waiting(said)
    world.unseen = unseen
    found = explain_pod(world, pod)
    with reserved_in(world) as reserved:
        assert PodHeadlines(world, reserved).of(pod) == found.headline
    return found


def test_the_scheduler_knows_better() -> None:
    """What it said last is the answer, and no place is promised."""
    found = explained(OURS, OTHERS)
    assert found.headline.reason is Reason.DEVICES_IN_USE
    assert found.headline.kind == "not now"
    assert found.headline.sentence.startswith("All are in use. This is what the scheduler says;")
    assert (found.node, found.devices, found.alternatives, found.remedies) == ("", (), (), ())
    assert found.funnels
    assert found.untried


@pytest.mark.parametrize("said", ["", THEIRS])
def test_without_its_word_the_answer_is_qualified(said: str) -> None:
    """A scheduler that gives no reason of the list leaves what can be seen."""
    found = explained(said, OTHERS)
    assert found.headline.reason is Reason.FITS
    assert found.headline.sentence.endswith(
        "as far as you may see; you may not see everything that is in use."
    )
    assert found.node == "node-a"


@pytest.mark.parametrize("unseen", [(), ("podgroups.scheduling.k8s.io",)])
def test_who_sees_all_that_is_in_use_is_told_what_was_found(unseen: tuple[str, ...]) -> None:
    """What the scheduler said then is out of date."""
    found = explained(OURS, unseen)
    assert found.headline.reason is Reason.FITS
    assert "as far as" not in found.headline.sentence


@pytest.mark.parametrize(
    ("unseen", "hides"),
    [
        (("pods",), True),
        (("namespaces", "resourceclaims.resource.k8s.io outside of namespace a"), True),
        (("resourceclaimtemplates.resource.k8s.io outside of namespace a",), False),
        ((), False),
    ],
)
def test_what_is_in_use_is_held_by_pods_and_claims(unseen: tuple[str, ...], hides: bool) -> None:
    """Other objects take nothing."""
    assert hides_use(unseen) is hides
