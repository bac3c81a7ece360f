"""Fair sharing comes to the shares of a direct computation, whoever came first: up to what cannot be divided.

What cannot be divided is one workload of the queue itself and one of another queue. By so much a level can be off: a queue waits if with
one more workload its level would be above that of everybody else without one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from quota.queues import Object, Story, cohort, limits, pods, queue, workload
from quota.water import Taker, dominant, filled, widest
from rounds import rounds

FAIR = {"fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare"]}}
POLICY: dict[str, Any] = {"within": "LowerPriority", "reclaim": "Any"}
weights = st.sampled_from(["0.5", "1", "1", "2", "3"])


@dataclass(frozen=True)
class Grove:
    """A tree of cohorts in which every queue wants a number of workloads of one cpu."""

    parents: dict[str, str]
    quotas: dict[str, int]
    weights: dict[str, str]
    wanted: dict[str, int]

    def children(self, name: str) -> list[str]:
        return [each for each, parent in self.parents.items() if parent == name]

    def subtree(self, name: str) -> int:
        return self.quotas[name] + sum(map(self.subtree, self.children(name)))

    def demand(self, name: str) -> int:
        return self.wanted.get(name, 0) + sum(map(self.demand, self.children(name)))

    def objects(self) -> list[Any]:
        found: list[Any] = []
        for name, parent in self.parents.items():
            quota, weight = self.quotas[name], self.weights[name]
            if name in self.wanted:
                found.append(queue(name, quota, parent, weight=weight, **POLICY))
            else:
                found.append(cohort(name, parent, quota, weight))
        return found


@st.composite
def groves(draw: st.DrawFn) -> Grove:
    names = ["root", *(f"c{n}" for n in range(draw(st.integers(0, 3))))]
    parents = {"root": ""}
    for number, name in enumerate(names[1:], 1):
        parents[name] = draw(st.sampled_from(names[:number]))
    wanted = {}
    for number in range(draw(st.integers(2, 4))):
        parents[f"q{number}"] = draw(st.sampled_from(names))
        wanted[f"q{number}"] = draw(st.integers(0, 10))
    quotas = {name: draw(st.integers(0, 3)) for name in parents}
    quotas["root"] = draw(st.integers(1, 10))
    return Grove(parents, quotas, {name: draw(weights) for name in parents}, wanted)


def used(story: Story, name: str) -> int:
    """By the workloads that have quota, in a queue."""
    return sum(
        1
        for key, each in story.run.checkpoints[-1]["workloads"].items()
        if each["status"] == "admitted" and key.startswith(f"default/{name}-")
    )


@settings(max_examples=rounds(50))
@given(groves(), st.randoms(use_true_random=False), st.booleans())
def test_a_tree_comes_to_the_levels_of_water(grove: Grove, random: Any, at_once: bool) -> None:
    """In every cohort, what its children have is what water in vessels of their weights has, if it stands on their own quota.

    Workloads come in any order, all at once or one by one.
    """
    coming = [
        workload(f"{name}-{n}", name, 1) for name, m in grove.wanted.items() for n in range(m)
    ]
    random.shuffle(coming)
    story = Story(*grove.objects(), config=FAIR)
    for each in coming:
        story.create(each)
        if not at_once:
            story.settle()
    story.settle()

    def total(name: str) -> int:
        return used(story, name) + sum(map(total, grove.children(name)))

    assert total("root") == min(grove.subtree("root"), grove.demand("root"))
    for parent in grove.parents:
        takers = {
            name: Taker(
                Fraction(grove.subtree(name)),
                Fraction(grove.demand(name)),
                Fraction(grove.weights[name]),
            )
            for name in grove.children(parent)
        }
        if not takers:
            continue
        slack = widest([each.weight for each in takers.values()])
        for name, expected in filled(Fraction(total(parent)), takers).items():
            assert abs(total(name) - expected) <= 1 + takers[name].weight * slack, name


@settings(max_examples=rounds(50))
@given(
    st.fixed_dictionaries({"cpu": st.integers(4, 16), "memory": st.integers(4, 16)}),
    st.lists(
        st.tuples(st.sampled_from([(1, 0), (0, 1), (1, 1)]), weights, st.integers(0, 10)),
        min_size=2,
        max_size=4,
    ),
    st.randoms(use_true_random=False),
)
def test_dominant_shares_rise_together(
    pools: dict[str, int], asked: list[tuple[tuple[int, int], str, int]], random: Any
) -> None:
    """Queues that ask for cpu, memory or both, one of each at a time, come to the shares of dominant resource fairness."""
    names = [f"q{n}" for n in range(len(asked))]
    asks = {q: {"cpu": c, "memory": m} for q, ((c, m), _, _) in zip(names, asked, strict=True)}
    weight = {q: Fraction(w) for q, (_, w, _) in zip(names, asked, strict=True)}
    numbers = {q: number for q, (_, _, number) in zip(names, asked, strict=True)}
    nothing = {"f": {"cpu": limits(0), "memory": limits(0)}}
    coming = [workload(f"{q}-{n}", q, pods(**asks[q])) for q in names for n in range(numbers[q])]
    random.shuffle(coming)
    story = Story(
        _pool(pools),
        *(queue(q, cohort="root", quota=nothing, weight=float(weight[q]), **POLICY) for q in names),
        *coming,
        config=FAIR,
    )
    story.settle()
    share = {
        q: max(Fraction(asks[q][pool], pools[pool]) for pool in pools) / weight[q] for q in names
    }
    expected = dominant(pools, asks, weight, numbers)
    largest = max(share.values())
    for name in names:
        level, found = expected[name] * share[name], used(story, name) * share[name]
        assert abs(found - level) <= share[name] + largest, (name, expected)


def _pool(pools: dict[str, int]) -> Object:
    found = cohort("root")
    resources = [{"name": name, "nominalQuota": str(amount)} for name, amount in pools.items()]
    found["spec"]["resourceGroups"] = [
        {"coveredResources": list(pools), "flavors": [{"name": "f", "resources": resources}]}
    ]
    return found
