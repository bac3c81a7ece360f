"""All queues of a cluster, and one of them, as data."""

from __future__ import annotations

import json

import pytest

from drayman.api import codec
from drayman.placement.world import World
from drayman.questions.errors import NoSuchObjectError
from drayman.questions.queues.answer import QueuesAnswer, QuotaRow
from drayman.questions.queues.one import one_queue
from drayman.questions.queues.overview import overview
from drayman.simulate.snapshot import read_snapshot, snapshot
from explain.hall import Hall


def figures(row: QuotaRow) -> dict[str, str]:
    """Everything that is not nothing."""
    names = ("nominal", "used", "borrowed", "lent", "reserved", "free", "shared")
    values = {name: getattr(row, name) for name in names}
    return {name: str(each) for name, each in values.items() if each is not None and each.amount}


def quotas(found: QueuesAnswer) -> dict[str, dict[str, str]]:
    """By queue or cohort, the figures of its only flavor."""
    rows = {each.name: each.quotas for each in (*found.queues, *found.cohorts)}
    return {name: figures(each[0]) for name, each in rows.items() if each}


def test_who_borrows_from_whom() -> None:
    """What one queue uses beyond its quota is lent by those that have something unused, in proportion."""
    hall = Hall().flavor("f").queue("a", "all", f=4).queue("b", "all", f=4).queue("c", "all", f=2)
    hall.workload("w", "a", 7, has="f")
    assert quotas(overview(hall.world())) == {
        "a": {"nominal": "4", "used": "7", "borrowed": "3", "free": "3"},
        "b": {"nominal": "4", "lent": "2", "free": "3"},
        "c": {"nominal": "2", "lent": "1", "free": "3"},
        "all": {"used": "7", "free": "3", "shared": "10"},
    }


def test_the_quota_of_a_cohort_is_virtual_first() -> None:
    """Only what exceeds it is lent by other queues."""
    hall = Hall().flavor("f").cohort("all", f=2).queue("a", "all", f=1).queue("b", "all", f=4)
    found = quotas(overview(hall.workload("w", "a", 4, has="f").world()))
    assert (found["all"]["lent"], found["b"]["lent"]) == ("2", "1")


def test_what_is_kept_from_others_is_not_lent() -> None:
    """A lending limit leaves the rest to the queue."""
    hall = Hall().flavor("f").queue("a", "all", f=1).queue("b", "all", f={"nominal": 4, "lend": 2})
    found = quotas(overview(hall.workload("w", "a", 3, has="f").world()))
    assert (found["b"]["lent"], found["b"]["free"]) == ("2", "2")


def test_quota_that_is_reserved_is_listed_apart() -> None:
    """It counts as used, though its workload is not admitted."""
    hall = Hall().flavor("f").queue("q", f=4).workload("x", "q", 1, has="f")
    hall.workload("y", "q", 2, has="f", admitted=False).workload("z", "q", 4)
    (queue,) = overview(hall.world()).queues
    assert figures(queue.quotas[0]) == {"nominal": "4", "used": "3", "reserved": "2", "free": "1"}
    assert (queue.pending, queue.reserving, queue.admitted) == (1, 2, 1)


def test_trees_come_with_cohorts_before_what_is_in_them() -> None:
    """Queues of a cohort come before the cohorts below it; queues without a cohort come last."""
    hall = Hall().flavor("f").cohort("top").cohort("sub", "top")
    hall.queue("z", "sub", f=1).queue("m", "top", f=1).queue("a", f=1)
    found = overview(hall.world())
    assert found.order == ("/top", "m", "/sub", "z", "a")
    assert {each.name: each.depth for each in found.queues} == {"m": 1, "z": 2, "a": 0}


@pytest.mark.parametrize(
    ("hall", "why"),
    [
        (
            Hall().flavor("f").queue("q", f=1, more={"stopPolicy": "HoldAndDrain"}),
            "it is stopped (stopPolicy HoldAndDrain)",
        ),
        (Hall().queue("q", f=1, g=1), "there are no ResourceFlavors f and g"),
        (
            Hall().flavor("f").cohort("x", "y").cohort("y", "x").queue("q", "x", f=1),
            "its cohorts form a circle, beginning with x",
        ),
    ],
    ids=["stopped", "flavors missing", "cohorts in a circle"],
)
def test_inactive_queues_say_why(hall: Hall, why: str) -> None:
    """The queue is listed, and the reason is said."""
    (queue,) = overview(hall.world()).queues
    assert (queue.active, queue.why_inactive) == (False, why)


def test_an_object_that_makes_no_sense_hides_no_other() -> None:
    """It is listed with the field."""
    hall = Hall().flavor("f").queue("good", f=1).queue("bad", f="much")
    found = overview(hall.world())
    assert [each.name for each in found.queues] == ["good"]
    (problem,) = found.problems
    assert problem.startswith("ClusterQueue bad: spec.resourceGroups[0]")


def test_fair_shares_are_given_where_they_count() -> None:
    """With fair sharing in the Configuration, each queue has its weighted share."""
    hall = Hall().flavor("f").queue("a", "all", f=2).queue("b", "all", f=8)
    hall.workload("w", "a", 4, has="f")
    assert [each.weighted_share for each in overview(hall.world()).queues] == [None, None]
    hall.configuration = {"fairSharing": {}}
    assert [each.weighted_share for each in overview(hall.world()).queues] == [200, 0]


def test_one_queue_has_those_that_hold_and_those_that_wait() -> None:
    """In the order of the queue, each with its place."""
    hall = Hall().flavor("f").queue("q", f=4).workload("x", "q", 4, has="f", runs="2h")
    hall.workload("late", "q", 1).workload("vip", "q", 1, priority=3)
    found = one_queue(hall.world(), "q")
    assert [(each.workload, each.ends_basis) for each in found.holders] == [
        ("default/x", "declared")
    ]
    assert [(each.position, each.workload) for each in found.pending] == [
        (1, "default/vip"),
        (2, "default/late"),
    ]
    assert all(each.estimate.start for each in found.pending)


def test_a_local_queue_has_its_own_part() -> None:
    """Positions are those in the cluster queue, because that is where they wait."""
    hall = Hall().flavor("f").queue("q", f=1).local("mine", "q").workload("x", "q", 1, has="f")
    hall.workload("other", "q", 1).objects["queued_workloads"][-1]["spec"]["queueName"] = "lq-q"
    hall.workload("own", "q", 1).objects["queued_workloads"][-1]["spec"]["queueName"] = "mine"
    found = one_queue(hall.world(), "mine", "default")
    assert [(each.position, each.workload) for each in found.pending] == [(2, "default/own")]
    assert found.holders == ()


@pytest.mark.parametrize(
    ("name", "namespace", "text"),
    [
        ("p", None, "there is no ClusterQueue p; `drayman queues` lists them"),
        ("lq-q", None, "there is a LocalQueue of that name in namespace default"),
        ("lq-p", "default", "there is no LocalQueue lq-p in namespace default; did you mean lq-q?"),
        ("astray", "default", "leads to ClusterQueue none, which does not exist"),
    ],
)
def test_a_queue_that_is_not_there(name: str, namespace: str | None, text: str) -> None:
    """The error says what may have been meant."""
    world = Hall().flavor("f").queue("q", f=1).local("astray", "none").world()
    with pytest.raises(NoSuchObjectError, match="Queue") as caught:
        one_queue(world, name, namespace)
    assert text in str(caught.value)


def kept(world: World) -> World:
    """The world after it was written to a snapshot and read from it."""
    text = b"".join(b"---\n" + each + b"\n" for each in snapshot(world))
    return read_snapshot("s", text, now=0)


def test_snapshots_keep_queues() -> None:
    """The same answer, the Configuration included, and nothing private of the pods."""
    hall = Hall().flavor("f").cohort("all").queue("a", "all", f=2).queue("b", "all", f=8)
    hall.workload("w", "a", 4, has="f").workload("v", "a", 9)
    hall.configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "fairSharing": {},
    }
    template = hall.objects["queued_workloads"][0]["spec"]["podSets"][0]["template"]
    template["spec"]["containers"][0] |= {
        "command": ["secret"],
        "env": [{"name": "TOKEN", "value": "secret"}],
    }
    template["metadata"]["annotations"]["example.com/note"] = "secret"
    world = hall.world()
    again = kept(world)
    assert overview(again) == overview(world)
    assert overview(again).fair_sharing
    assert b"secret" not in b"".join(snapshot(world))


def test_workloads_of_another_group_are_not_taken_for_those_of_queues() -> None:
    """Kubernetes has a kind of the same name."""
    text = json.dumps(
        {"apiVersion": "scheduling.k8s.io/v1alpha1", "kind": "Workload", "metadata": {"name": "w"}}
    )
    text += "\n" + json.dumps(
        codec.to_dict(Hall().flavor("f").queue("q", f=1).world().objects.cluster_queues[0])
    )
    world = read_snapshot("s", text.encode(), now=0)
    assert world.objects.queued_workloads == ()
    assert len(world.objects.cluster_queues) == 1
