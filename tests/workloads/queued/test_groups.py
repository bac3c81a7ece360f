"""Groups of pods that are admitted together (cases G7 to G12 of the specification)."""

from __future__ import annotations

import pytest

from drayman.workloads.queued.composing import CompositionError, Importance
from drayman.workloads.queued.groups import (
    are_ready,
    ended,
    is_active,
    is_group_workload,
    missing,
    pod_sets_of_group,
    reclaimable,
    replaced,
    statement_of,
    surplus,
    workload_for_group,
)
from drayman.workloads.queued.kinds import Ended
from workloads.queued.objects import by_uid, member, members


def pod_sets(*bodies):
    found = members(*bodies)
    return pod_sets_of_group(found, by_uid(*bodies), statement_of(found))


def names(found):
    return [each.pod.metadata.name for each in found]


def test_g7_a_group_is_made_into_a_workload_when_all_its_pods_are_there():
    """One of two is not enough; two become a Workload with the group's name, which both own."""
    one, other = member("a"), member("b")
    with pytest.raises(CompositionError, match="fewer runnable pods than expected: 1 of 2"):
        pod_sets(one)
    made = workload_for_group(
        "default", "group", members(one, other), by_uid(one, other), Importance(7)
    )
    assert made["metadata"]["name"] == "group"
    assert [owner["name"] for owner in made["metadata"]["ownerReferences"]] == ["a", "b"]
    assert is_group_workload(made["metadata"]["annotations"])
    (only,) = made["spec"]["podSets"]
    assert (only["count"], made["spec"]["queueName"], made["spec"]["priority"]) == (2, "team", 7)
    assert "schedulingGates" not in only["template"]["spec"]


def test_g7_pods_of_several_roles_are_several_pod_sets():
    """Roles are told apart by what pods ask for, and the sets are in a fixed order."""
    bodies = [member("a", total=3), member("b", total=3, cpu="4"), member("c", total=3)]
    found = pod_sets(*bodies)
    assert sorted(each.count for each in found) == [1, 2]
    assert found == pod_sets(*reversed(bodies))


def test_g8_a_group_with_fast_admission_is_whole_with_its_first_pod():
    """It is one pod set of the total size."""
    (only,) = pod_sets(member("a", total=5, fast=True))
    assert only.count == 5


DISAGREEING = {
    "different totals": (member("a"), member("b", total=3), "different total counts: 3 and 2"),
    "different queues": (member("a"), member("b", queue="other"), "different queues: other and team"),
    "no number": (member("a", total="two"), member("b", total="two"), "total-count"),
}  # fmt: skip


@pytest.mark.parametrize("case", DISAGREEING)
def test_g9_members_that_disagree_are_no_group(case):
    """The pods that disagree are named, and no Workload is made."""
    *bodies, words = DISAGREEING[case]
    with pytest.raises(CompositionError, match=words):
        statement_of(members(*bodies))


ENDS = {
    "all succeeded": (
        [member("a", phase="Succeeded"), member("b", phase="Succeeded")],
        Ended(True, "Pods succeeded: 2/2."),
    ),
    "one still runs": ([member("a", phase="Succeeded"), member("b", phase="Running")], None),
    "one failed and can be replaced": (
        [member("a", phase="Succeeded"), member("b", phase="Failed")],
        None,
    ),
    "one failed for good and none runs": (
        [member("a", phase="Succeeded"), member("b", phase="Failed", retriable=False)],
        Ended(False, "Pods succeeded: 1/2."),
    ),
    "one failed for good and another one runs": (
        [member("a", phase="Running"), member("b", phase="Failed", retriable=False)],
        None,
    ),
    "one is not to be retried and both may still run": (
        [member("a"), member("b", retriable=False)],
        None,
    ),
    "a group that serves never ends": (
        [
            member("a", serving=True, phase="Succeeded"),
            member("b", serving=True, phase="Succeeded"),
        ],
        None,
    ),
}


@pytest.mark.parametrize("case", ENDS)
def test_g10_when_a_group_has_ended(case):
    """When as many pods as it has have succeeded, or when none runs and one of them must not be retried."""
    bodies, wanted = ENDS[case]
    found = members(*bodies)
    assert ended(found, statement_of(found)) == wanted


def test_g11_a_failed_pod_is_missing_until_it_is_replaced():
    """Then nobody has to count it any more."""
    sets = pod_sets(member("a"), member("b"))
    running = member("a", phase="Running", gated=False)
    failed = member("b", phase="Failed", gated=False)
    before, after = members(running, failed), members(running, failed, member("c"))
    assert (missing(before, sets), missing(after, sets)) == (1, 0)
    assert (names(replaced(before, sets)), names(replaced(after, sets))) == ([], ["b"])
    assert surplus(after, sets) == []


SURPLUS = {
    "the younger of two that wait": ([member("a", created=1), member("b", created=2), member("c", created=3)], ["c"]),
    "the one that waits, not those that run": (
        [member("a", created=3, gated=False), member("b", created=1), member("c", created=4, gated=False)],
        ["b"],
    ),
    "the one that nobody has counted": (
        [member("a", created=1, counted=False), member("b", created=2), member("c", created=3)],
        ["a"],
    ),
    "the place of one that succeeded is taken": (
        [member("a", phase="Succeeded"), member("b", created=1), member("c", created=2)],
        ["c"],
    ),
    "one that is going already is not too many": ([member("a"), member("b"), member("c", deleted=True)], []),
}  # fmt: skip


@pytest.mark.parametrize("case", SURPLUS)
def test_g11_which_pods_are_too_many(case):
    """Those stay that are counted on, then those that run, then the older ones."""
    bodies, wanted = SURPLUS[case]
    assert names(surplus(members(*bodies), pod_sets(member("a"), member("b")))) == wanted


def test_g11_a_pod_of_a_role_that_the_group_does_not_have_is_too_many():
    """Where the group has several roles, so that it cannot stand for the only one."""
    sets = pod_sets(member("a"), member("b", cpu="2"))
    found = members(member("a"), member("b", cpu="2"), member("c", cpu="3"))
    assert names(surplus(found, sets)) == ["c"]


def test_g12_a_workload_that_is_not_marked_is_not_the_groups():
    """Whatever it is called."""
    assert not is_group_workload({})
    assert not is_group_workload({"kueue.x-k8s.io/is-group-workload": "false"})


def test_a_group_is_active_while_a_pod_that_was_let_go_is_not_over():
    """Gated pods use nothing; pods that are being deleted use something until their time is over."""
    now = 1767225660.0  # A minute into the year 2026, when the pods that are being deleted have had their time.
    assert not is_active(members(member("a"), member("b")), now)
    assert is_active(members(member("a", gated=False), member("b")), now)
    leaving = members(member("a", gated=False, deleted=True, node="n"))
    assert (is_active(leaving, now - 1), is_active(leaving, now)) == (True, False)
    assert not is_active(members(member("a", gated=False, deleted=True)), now - 1)


def test_readiness_and_what_can_be_reclaimed():
    """Pods that succeeded are ready, and need no place any more."""
    sets = pod_sets(member("a"), member("b"))
    ready = member("a", phase="Running")
    ready["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    done = member("b", phase="Succeeded")
    assert not are_ready(members(ready, member("b", phase="Running")), sets)
    assert are_ready(members(ready, done), sets)
    assert list(reclaimable(members(ready, done), sets).values()) == [1]
