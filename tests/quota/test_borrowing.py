"""Borrowing, lending, limits and flavors: who gets quota beside whom, and in which flavor."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.kueue import FlavorFungibility
from drayman.quota.flavors.ranks import Rank, Serving, is_better
from drayman.quota.tree.building import forest_of, quotas_of
from quota.queues import Object, Story, cohort, flavor, held, limits, pods, queue, workload


def flavors_of(story: Story, name: str) -> dict[str, str]:
    """The flavors that a workload has."""
    found = story.settle()["workloads"][f"default/{name}"]
    return dict(found["podSets"][0]["flavors"]) if "podSets" in found else {}


def test_b1_a_queue_borrows_what_its_cohort_has() -> None:
    """Seven of five and five are admitted; three are left for the other."""
    story = Story(queue("a", 5, "co"), queue("b", 5, "co"), workload("w", "a", 7))
    assert story.admitted() == {"w"}
    story.create(workload("x", "b", 4), workload("y", "b", 3))
    assert story.admitted() == {"w", "y"}


def test_b2_what_is_not_lent_is_not_borrowed() -> None:
    """Lending two leaves the borrower one short."""
    story = Story(
        queue("a", limits(3, lend=2), "co"),
        queue("b", limits(2, lend=2), "co"),
        held("used", "b", 2),
        workload("w", "b", 3),
    )
    assert story.admitted() == {"used"}
    story.create(workload("x", "b", 2))
    assert story.admitted() == {"used", "x"}


@pytest.mark.parametrize(("lent", "asked", "fits"), [(3, 4, False), (5, 5, True)])
def test_b3_b4_lending_limits_hold_over_two_levels(lent: int, asked: int, fits: bool) -> None:
    """Across two cohorts no more can be borrowed than is lent."""
    story = Story(
        cohort("left", "root"),
        cohort("right", "root"),
        queue("lender", limits(10, lend=lent), "left"),
        queue("borrower", limits(5, borrow=10), "right"),
        held("used", "borrower", 5),
        workload("w", "borrower", asked),
    )
    assert ("w" in story.admitted()) is fits


@pytest.mark.parametrize(
    ("second", "admitted"), [(14, {"one", "two"}), (16, {"one"})], ids=["b5", "b6"]
)
def test_b5_b6_two_borrow_in_one_cycle(second: int, admitted: set[str]) -> None:
    """Both borrow if there is enough for both; otherwise the more important one does."""
    story = Story(
        *(queue(name, limits(10, borrow=10), "co") for name in "abc"),
        workload("two", "b", second),
        workload("one", "a", 16, priority=1),
    )
    assert story.admitted() == admitted


def test_b7_who_does_not_borrow_goes_first() -> None:
    """The one within its own quota is admitted although the other one is older."""
    story = Story(
        queue("a", limits(50, borrow=50), "co"),
        queue("b", limits(50, borrow=10), "co"),
        workload("borrows", "b", 56),
        workload("own", "a", 45),
    )
    assert story.admitted() == {"own"}


def test_b8_two_borrow_different_resources_of_a_flavor() -> None:
    """Resources of one flavor are counted each for itself."""
    quota: dict[str, dict[str, Any]] = {"f": {"cpu": 4, "memory": 4}}
    story = Story(
        queue("a", cohort="co", quota=quota),
        queue("b", cohort="co", quota=quota),
        workload("x", "a", pods(cpu=6, memory=2)),
        workload("y", "b", pods(cpu=2, memory=6)),
    )
    assert story.admitted() == {"x", "y"}


def test_b9_what_there_is_to_lend_is_added_up_by_resource() -> None:
    """Eight and two of cpu, three of gpu."""
    cpu, gpu = limits(8, lend=8), limits(3, lend=3)
    objects = [
        *queue("a", cohort="co", quota={"f": {"cpu": cpu, "gpu": gpu}}),
        *queue("b", limits(2, lend=2), "co"),
    ]
    story = Story(*objects)
    root = story.run.state.books.forest.cohorts["co"]
    assert root.lendable == {"cpu": 10_000, "gpu": 3}


def test_b10_a_resource_that_no_group_covers() -> None:
    """Something of it cannot be had, nothing of it does no harm; it is ignored if the configuration says so."""
    asked = [
        workload("some", "q", pods(cpu=1, memory=1)),
        workload("none", "q", pods(cpu=1, memory=0)),
    ]
    story = Story(queue("q", 4), *asked)
    assert story.admitted() == {"none"}
    assert story.reason("some") == "NoMatchingFlavor"
    ignoring = {"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}}
    assert Story(queue("q", 4), *asked, config=ignoring).admitted() == {"some", "none"}


def two_flavors(first: Object, second: Object, *, cpu: tuple[Any, Any] = (4, 4)) -> list[Any]:
    names = first["metadata"]["name"], second["metadata"]["name"]
    quota = {names[0]: {"cpu": cpu[0]}, names[1]: {"cpu": cpu[1]}}
    return [first, second, queue("q", quota=quota)]


TAINT = {"key": "spot", "value": "true", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("tolerations", "chosen"), [([], "two"), ([{"key": "spot", "operator": "Exists"}], "one")]
)
def test_b11_a_taint_is_tolerated_by_the_flavor_or_passed_over(
    tolerations: list[Object], chosen: str
) -> None:
    """A tainted flavor is left out unless it carries the toleration itself."""
    tainted = flavor("one", nodeTaints=[TAINT], tolerations=tolerations)
    story = Story(*two_flavors(tainted, flavor("two")), workload("w", "q", 1))
    assert flavors_of(story, "w") == {"cpu": chosen}


@pytest.mark.parametrize(("key", "chosen"), [("arch", "one"), ("zone", "two")])
def test_b12_affinity_counts_for_the_labels_that_a_flavor_has(key: str, chosen: str) -> None:
    """A requirement on a label that the flavor does not list is left to whoever places the pods."""
    expression = {"key": key, "operator": "In", "values": ["b"]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [expression]}]
            }
        }
    }
    asking = pods(cpu=1)
    asking["template"]["spec"]["affinity"] = affinity
    one, two = flavor("one", nodeLabels={"zone": "a"}), flavor("two", nodeLabels={"zone": "b"})
    story = Story(*two_flavors(one, two), workload("w", "q", asking))
    assert flavors_of(story, "w") == {"cpu": chosen}


@pytest.mark.parametrize(
    ("when_can_preempt", "chosen"), [("TryNextFlavor", "two"), ("MayStopSearch", "one")]
)
def test_b13_b14_the_next_flavor_or_preemption(when_can_preempt: str, chosen: str) -> None:
    """By default the flavor that fits is taken; a queue may prefer to preempt in the first one."""
    fungibility = {"whenCanPreempt": when_can_preempt}
    quota = {"one": {"cpu": 10}, "two": {"cpu": 10}}
    story = Story(
        flavor("one"),
        flavor("two"),
        queue("q", quota=quota, within="LowerPriority", flavorFungibility=fungibility),
        held("low", "q", 2, flavor="one", priority=-1),
        workload("w", "q", 9),
    )
    assert flavors_of(story, "w") == {"cpu": chosen}


def test_b15_a_full_flavor_without_victims_is_passed_over() -> None:
    """There is nothing to stop for where nobody may be preempted."""
    quota = {"one": {"cpu": 50}, "two": {"cpu": 100}}
    fungibility = {"whenCanPreempt": "MayStopSearch"}
    story = Story(
        flavor("one"),
        flavor("two"),
        queue("q", quota=quota, within="LowerPriority", flavorFungibility=fungibility),
        held("full", "q", 50, flavor="one"),
        workload("w", "q", 20),
    )
    assert flavors_of(story, "w") == {"cpu": "two"}


DEFAULT = FlavorFungibility()
PREEMPT = FlavorFungibility(preference="PreemptionOverBorrowing")


def test_b16_the_preference_compares_rank_or_distance_first() -> None:
    """By default what fits is better, from however far it borrows; the other way round if the queue prefers it."""
    far, near = Serving(Rank.FIT, 2), Serving(Rank.PREEMPT, 1)
    assert is_better(far, near, DEFAULT)
    assert is_better(near, far, PREEMPT)


@pytest.mark.parametrize("fungibility", [DEFAULT, PREEMPT])
def test_b17_without_candidates_a_flavor_is_next_to_useless(fungibility: FlavorFungibility) -> None:
    """Anything viable is better, in every preference, and nothing at all is worse."""
    nobody, viable = Serving(Rank.NO_CANDIDATES, 0), Serving(Rank.PREEMPT, 3)
    assert is_better(viable, nobody, fungibility)
    assert not is_better(nobody, viable, fungibility)
    assert is_better(nobody, Serving(Rank.NO_FIT), fungibility)


def test_b18_who_borrows_from_nearer_by_goes_first() -> None:
    """A queue in the cohort that has the quota comes before one that borrows it across the root."""
    story = Story(
        cohort("guaranteed", "root", cpu=4),
        queue("near", 0, "guaranteed"),
        queue("far", 0, "root"),
        workload("late", "far", 4),
        workload("first", "near", 4),
    )
    assert story.admitted() == {"first"}


@pytest.mark.parametrize(
    ("reclaim", "admitted"),
    [("Any", True), ("LowerPriority", False), ("Never", False)],
    ids=["b19", "b20", "b20, never"],
)
def test_b19_b20_a_blocked_workload_keeps_its_quota(reclaim: str, admitted: bool) -> None:
    """In one cycle others do not borrow what a blocked head could use, unless its queue can reclaim it from anybody."""
    story = Story(
        queue("a", 2, "co", reclaim=reclaim, queueingStrategy="StrictFIFO"),
        queue("b", 0, "co"),
        held("used", "a", 1),
        workload("blocked", "a", 2),
        workload("w", "b", 1),
    )
    assert ("w" in story.admitted()) is admitted


def test_b21_nothing_is_admitted_in_a_circle_of_cohorts() -> None:
    """Not until the circle is broken."""
    story = Story(cohort("x", "y"), cohort("y", "x"), queue("q", 4, "x"), workload("w", "q", 2))
    assert story.admitted() == set()
    assert story.run.state.books.forest.in_circles == {"q"}
    story.patch("Cohort", "y", {"spec": {"parentName": None}})
    assert story.admitted() == {"w"}


def test_b22_quota_of_a_cohort_that_goes_is_not_borrowed_any_more() -> None:
    """What the tree has follows from the objects that are there."""
    story = Story(cohort("co", cpu=3), queue("q", 2, "co"), workload("w", "q", 4))
    assert story.admitted() == {"w"}
    story.delete("Cohort", "co")
    story.create(workload("x", "q", 1))
    assert story.admitted() == {"w"}
    root = story.run.state.books.forest.cohorts["co"]
    assert list(root.subtree.values()) == [2000]


def test_b23_a_sum_beyond_all_numbers_is_not_admitted() -> None:
    """Nothing wraps round."""
    huge = [pods(f"s{i}", 2, memory=2**62) for i in range(3)]
    story = Story(queue("q", quota={"f": {"memory": 2**62}}), workload("w", "q", *huge))
    assert story.admitted() == set()
    assert story.reason("w") == "ExceedsMaxQuota"


def test_b24_pods_are_a_resource_if_a_queue_covers_them() -> None:
    """Six tiny pods wait for five places."""
    story = Story(
        queue("q", quota={"f": {"cpu": 100, "pods": 5}}), workload("w", "q", pods(count=6, cpu=1))
    )
    assert story.admitted() == set()
    story.create(workload("x", "q", pods(count=5, cpu=1)))
    assert story.admitted() == {"x"}


def test_quotas_are_read_with_their_limits() -> None:
    """Cpu in thousandths; a limit that is not given is none."""
    from drayman.api.codec import convert
    from drayman.api.kueue import ClusterQueueSpec

    spec = convert(ClusterQueueSpec, queue("q", limits("1500m", borrow=1))[0]["spec"])
    ((what, quota),) = quotas_of(spec.resource_groups).items()
    assert (what.flavor, what.resource) == ("f", "cpu")
    assert (quota.nominal, quota.borrowing_limit, quota.lending_limit) == (1500, 1000, None)
    assert forest_of({"q": spec}, {}).queues["q"].available(what) == 1500


def test_a_flavor_serves_as_its_worst_resource_does() -> None:
    """Memory has to be preempted within the own quota. That cpu would be borrowed does not make it look at the next flavor."""
    fungibility = {"whenCanPreempt": "MayStopSearch", "whenCanBorrow": "TryNextFlavor"}
    quota = {"f": {"cpu": 1, "memory": 4}, "g": {"cpu": 4, "memory": 4}}
    story = Story(
        flavor("g"),
        queue("q", cohort="co", quota=quota, within="LowerPriority", flavorFungibility=fungibility),
        queue("lender", cohort="co", quota={"f": {"cpu": 4, "memory": 0}}),
        held("low", "q", pods(memory=4), priority=-1),
        workload("w", "q", pods(cpu=2, memory=2)),
    )
    assert story.victims("w") == {"low": "InClusterQueue"}


def test_the_head_of_a_strict_queue_says_the_same_each_time() -> None:
    """It is tried with the flavors one after the other, again and again. What it says is what all of them come to."""
    fungibility = {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"}
    story = Story(
        flavor("g", nodeLabels={"kind": "g"}),
        queue(
            "q",
            quota={"f": {"cpu": 4}, "g": {"cpu": 1}},
            queueingStrategy="StrictFIFO",
            flavorFungibility=fungibility,
        ),
        workload("w", "q", pods("small", cpu=2), pods("large", cpu=9)),
    )
    state = story.run.state
    said = [[(each.reason, each.message) for each in state.cycle(9e9)] for _ in range(6)]  # type: ignore[union-attr]
    assert said[2] == said[3] == said[4] == said[5]
