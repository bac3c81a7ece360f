"""What is said about workloads in queues, and that each remedy does what it promises."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from drayman.explain.answer import Explanation
from drayman.explain.queues.explaining import explain_queued
from drayman.explain.queues.settling import without
from drayman.explain.queues.standing import Line
from drayman.placement.world import World
from drayman.reasons.reason import Reason
from explain.applying import apply
from explain.hall import Hall
from explain.queues.cases import (
    CASES,
    Case,
    one_queue,
    preempting_in_vain,
    room_of_another,
    small_node,
)

KEY = "default/w"


def explained(world: World) -> Explanation:
    (workload,) = (each for each in world.objects.queued_workloads if each.metadata.name == "w")
    return explain_queued(world, workload)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_the_case_is_told(case: Case) -> None:
    """Reason, sentence, position and remedies are those of the case."""
    found = explained(case.hall().world())
    assert (found.headline.reason, case.says in found.headline.sentence) == (case.reason, True), (
        str(found.headline)
    )
    assert [
        words
        for words, remedy in zip(case.remedies, found.remedies, strict=True)
        if not remedy.sentence.startswith(words)
    ] == [], found.remedies
    assert found.queue is not None
    assert found.queue.position == case.position


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.remedies], ids=lambda case: case.name.replace(" ", "-")
)
def test_each_remedy_helps(case: Case) -> None:
    """Once it is carried out on the objects, an engine that is told of them from the beginning gives the workload its quota."""
    world = case.hall().world()
    for remedy in explained(world).remedies:
        after = world.with_objects(apply(world.objects, remedy))
        assert KEY in Line(after).settled.given, remedy.sentence


def test_a_command_means_workloads_of_kueue() -> None:
    """A server with Workloads of scheduling.k8s.io, such as `drayman up`, takes the bare name of the kind for those."""
    hall = one_queue().workload("w", "q", 1, active=False)
    assert [remedy.commands for remedy in explained(hall.world()).remedies] == [
        (
            "kubectl patch workloads.kueue.x-k8s.io w -n default --type=json -p"
            """ '[{"op":"add","path":"/spec/active","value":true}]'""",
        )
    ]


def test_a_remedy_that_helps_only_others_is_not_named() -> None:
    """If the end of a workload serves those that are ahead, it is not named."""
    hall = one_queue().workload("holder", "q", 4, has="f")
    hall.workload("ahead", "q", 4, priority=1).workload("w", "q", 1)
    found = explained(hall.world())
    assert found.headline.reason is Reason.QUOTA_IN_USE
    assert all("holder" not in remedy.sentence for remedy in found.remedies)
    hall.objects["queued_workloads"].pop(1)
    assert "holder" in explained(hall.world()).remedies[0].sentence


def test_quota_is_raised_for_those_ahead_too() -> None:
    """What would only help those ahead is not enough."""
    hall = one_queue().workload("holder", "q", 4, has="f")
    hall.workload("ahead", "q", 1).workload("w", "q", 1)
    sentences = [remedy.sentence for remedy in explained(hall.world()).remedies]
    assert "Raise the quota of ClusterQueue q in flavor f by 2 cpu." in sentences


def test_who_is_ahead_and_who_holds_is_named() -> None:
    """The answer has those ahead in their order, and those who hold what is lacking, the largest first."""
    hall = one_queue().workload("s", "q", 1, has="f").workload("l", "q", 3, has="f")
    hall.workload("late", "q", 2).workload("vip", "q", 2, priority=9).workload("w", "q", 2)
    place = explained(hall.world()).queue
    assert place is not None
    assert place.ahead == ("default/vip", "default/late")
    assert (place.position, place.waiting) == (3, 3)
    assert [each.workload for each in place.holders] == ["default/l", "default/s"]
    assert [
        (each.flavor, str(each.wanted), str(each.free), str(each.most)) for each in place.needs
    ] == [("f", "2", "0", "4")]


def test_what_it_would_get_is_named() -> None:
    """For a workload that fits, with the flavor that admission would choose."""
    hall = Hall().flavor("f").flavor("g").queue("q", f=1, g=4).workload("w", "q", 2)
    place = explained(hall.world()).queue
    assert place is not None
    assert [(each.flavor, str(each.amount)) for each in place.charges] == [("g", "2")]


def test_asking_changes_nothing() -> None:
    """After all trials, every workload stands as before."""
    hall = (
        one_queue()
        .workload("x", "q", 2, has="f", runs="2h")
        .workload("y", "q", 2, has="f", runs="3h")
    )
    hall.workload("w", "q", 3).workload("v", "q", 3).workload("u", "q", 1)
    world = hall.world()
    first, again = explained(world), explained(world)
    assert first == again
    assert first.estimate is not None
    assert first.estimate.start


def test_a_workload_that_makes_no_sense_says_so() -> None:
    """The field that is wrong is named, and other workloads are not disturbed."""
    hall = one_queue().workload("other", "q", 1).workload("w", "q", 1, podSets="many")
    found = explained(hall.world())
    assert "cannot be understood" in found.headline.sentence
    assert "podSets" in found.headline.sentence


def test_without_a_configuration_prices_are_as_workloads_say() -> None:
    """The mappings of the control loop may not be known; what a workload asked for when it was tried is in its status."""
    requests = [{"name": "main", "resources": {"cpu": "3"}}]
    hall = one_queue().workload("w", "q", 1, status={"resourceRequests": requests})
    template = hall.objects["queued_workloads"][0]["spec"]["podSets"][0]["template"]
    template["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "none"}]
    template["spec"]["containers"][0]["resources"] = {}
    place = explained(hall.world()).queue
    assert place is not None
    assert [(each.resource, str(each.amount)) for each in place.charges] == [("cpu", "3")]
    hall.configuration = {"resources": {}}
    assert explained(hall.world()).headline.reason is Reason.NO_PRICE


def test_a_condition_is_called_one_only_if_the_workload_has_it() -> None:
    """Of workloads that ask for the same, admission tells the first alone."""
    said = "insufficient unused quota for cpu in flavor f, 1 more needed"
    condition = {"type": "QuotaReserved", "status": "False", "reason": "WaitingForQuota"}
    for message, is_written in ((said, True), ("something else", False), ("", False)):
        conditions = [{**condition, "message": message}] if message else []
        hall = one_queue().workload("other", "q", 4, has="f")
        hall.workload("w", "q", 1, status={"conditions": conditions})
        place = explained(hall.world()).queue
        assert place is not None
        assert (place.reason, place.message) == ("WaitingForQuota", said)
        assert place.is_written is is_written


def test_a_trial_asks_one_of_those_that_there_is_no_room_for() -> None:
    """What it is told holds for all that ask for the same."""
    hall = preempting_in_vain()
    for name in ("x", "y", "z"):
        hall.workload(name, "q", 3, priority=10)
    line = Line(hall.world())
    assert line.settled.roomless == {"default/w", "default/x", "default/y", "default/z"}
    assert set(without(line.queues, ()).refused) == {"default/w"}


def test_a_trial_asks_each_where_wishes_differ() -> None:
    """Two have the same requests, and one of them a volume that does not exist: the other one still preempts."""
    hall = preempting_in_vain().workload("z", "q", 3, priority=10)
    hall.objects["nodes"][0]["status"]["allocatable"]["cpu"] = "4"
    wishes = hall.objects["queued_workloads"][1]["spec"]["podSets"][0]["template"]["spec"]
    wishes["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]
    line = Line(hall.world())
    assert line.settled.roomless == {"default/w"}
    assert set(line.settled.victims) == {"default/z"}
    assert set(without(line.queues, ()).victims) == {"default/z"}


@pytest.mark.parametrize(
    ("hall", "reason", "message"),
    [
        (small_node, "WaitingForRoom", "ClusterQueue q preempts nobody"),
        (room_of_another, "WaitingForPreemptedWorkloads", "Pending the preemption of 1 workload"),
    ],
)
def test_who_has_no_room_is_told_what_admission_says(
    hall: Callable[[], Hall], reason: str, message: str
) -> None:
    """As whoever has no quota is."""
    place = explained(hall().world()).queue
    assert place is not None
    assert (place.reason, message in place.message) == (reason, True), place.message


def test_it_is_said_that_no_room_was_searched_for() -> None:
    """Remedies are about quota: that none was found does not mean that there is none, such as a node to uncordon."""
    assert (
        explained(small_node().world()).untried
        == "Changes that would make room on nodes were not tried."
    )
