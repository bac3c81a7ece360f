"""A slice that takes the place of a smaller one: the difference is charged, in the same flavors, and nothing is counted twice."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.kueue_workload import Admission, PodSetAssignment, Workload
from drayman.quota.admissions import holding_of, shrunk
from drayman.quota.amounts import FlavorResource, quantity_of
from drayman.quota.claims.prices import ClaimPrice
from drayman.quota.claims.users import ClaimUse
from drayman.quota.decisions import Reserved
from quota.queues import NAMESPACE, Object, Story, flavor, held, pods, queue, workload

REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"


JOB = "uid-of-the-job"


def of_job(made: Object, uid: str = JOB) -> Object:
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": uid}
    made["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    return made


def smaller(name: str = "old", cpu: int = 2, **more: Any) -> Object:
    return of_job(held(name, "q", cpu, **more))


def larger(name: str, cpu: int, of: str = "old", **more: int) -> Object:
    made = of_job(workload(name, "q", cpu, **more))
    made["metadata"]["annotations"] = {REPLACES: f"{NAMESPACE}/{of}"}
    return made


@pytest.mark.parametrize(
    ("cpu", "beside", "gets_it"),
    [(4, 0, True), (5, 0, False), (4, 1, False), (3, 1, True)],
)
def test_only_the_difference_is_needed(cpu: int, beside: int, gets_it: bool) -> None:
    """Of four, the smaller slice holds two: the larger one gets what that and the others leave."""
    story = Story(queue("q", 4), smaller())
    if beside:
        story.create(held("beside", "q", beside))
    story.create(larger("new", cpu))
    assert ("new" in story.admitted()) is gets_it


def test_what_both_hold_counts_once() -> None:
    """With the larger slice admitted, exactly the rest is free; others wait for it no longer than that."""
    story = Story(queue("q", 6), smaller(), larger("new", 4))
    assert "new" in story.admitted()
    story.create(workload("rest", "q", 2))
    assert "rest" in story.admitted()
    story.create(workload("more", "q", 1))
    assert "more" not in story.admitted()


def test_it_stays_in_its_flavors() -> None:
    """Another flavor has room for all of it, and its own has none: it waits, because its pods run there already."""
    quota = {"f": {"cpu": 9}, "g": {"cpu": 3}}
    story = Story(flavor("g"), queue("q", quota=quota), smaller(flavor="g"))
    story.create(larger("new", 4))
    assert "new" not in story.admitted()
    story.delete("Workload", "new")
    story.create(larger("newer", 3))
    assert "newer" in story.admitted()
    (assigned,) = story.run.state.entries[
        f"{NAMESPACE}/newer"
    ].holding.admission.pod_set_assignments  # type: ignore[union-attr]
    assert assigned.flavors == {"cpu": "g"}


def test_others_are_driven_out_for_the_difference_and_not_the_smaller_slice() -> None:
    """By the rules of its queue."""
    story = Story(queue("q", 4, within="LowerPriority"), smaller(priority=5))
    story.create(held("low", "q", 2))
    story.create(larger("new", 4, priority=5))
    assert set(story.victims("new")) == {"low"}


def test_what_could_not_be_written_is_taken_back() -> None:
    """The smaller slice holds its quota again, and the larger one waits."""
    story = Story(queue("q", 4), smaller())
    state = story.run.state
    state.set_workload(convert(Workload, {**larger("new", 4), "kind": "Workload"}), 0.0)
    decisions = state.cycle(3_000_000.0)
    assert any(isinstance(each, Reserved) for each in decisions)
    old, new = (state.entries[f"{NAMESPACE}/{name}"] for name in ("old", "new"))
    assert (old.holding, new.holding is None) == (None, False)
    state.forget(new.key, 3_000_000.0)
    assert old.holding is not None
    assert new.holding is None
    place = state.books.queues["q"].place
    assert set(place.usage.values()) == {2000}


@pytest.mark.parametrize(
    ("pods", "paid", "left", "own"),
    [(4, 2, 2, 2), (4, 0, 2, 3), (3, 1, 2, 4), (4, 9, 1, 0)],
    ids=["a shared claim", "none", "parts are rounded up", "more than there is"],
)
def test_what_is_paid_once_does_not_shrink(pods: int, paid: int, left: int, own: int) -> None:
    """Of six GPUs, some are paid for a claim that all pods share; the others go with the pods."""
    gpu = FlavorResource("f", "gpu")
    assigned = PodSetAssignment(
        name="main", flavors={"gpu": "f"}, resource_usage={"gpu": quantity_of("gpu", 6)}, count=pods
    )
    before = Admission(cluster_queue="q", pod_set_assignments=(assigned,))
    uses = (ClaimUse(ClaimPrice((NAMESPACE, "c"), {"gpu": paid}), "main", paid={"gpu": paid}),)
    after = shrunk(before, "main", left, uses)
    holding = holding_of(after, 0.0, (), claims=uses)
    assert holding.own == {gpu: own}
    assert holding.usage.quota == {gpu: own + min(paid, 6)}


def test_a_waiting_pod_set_of_a_slice_is_one_of_its_own_shape() -> None:
    """Equal requests of others are not refused with it: they need all of it."""
    story = Story(queue("q", 4), smaller())
    story.create(workload("other", "q", pods(count=4, cpu=1)), larger("new", 4))
    assert "new" in story.admitted()


@pytest.mark.parametrize("uid", ["", "another-job"])
def test_nobody_takes_the_place_of_what_is_not_of_its_own_job(uid: str) -> None:
    """Whoever may annotate Workloads could have others counted no longer, whose pods go on running."""
    old, new = smaller(), larger("new", 4)
    if uid:
        of_job(new, uid)
    else:
        del new["metadata"]["ownerReferences"]
    story = Story(queue("q", 4), old, new)
    assert story.admitted() == {"old"}
    assert set(story.run.state.books.queues["q"].place.usage.values()) == {2000}


def test_nobody_takes_its_own_place() -> None:
    """A Workload that says that it replaces itself would hold quota that nobody counts."""
    story = Story(queue("q", 4), larger("new", 3, of="new"))
    story.patch("Workload", "new", {"metadata": {"labels": {"seen": "again"}}})
    story.create(workload("other", "q", 2))
    assert story.admitted() == {"new"}
