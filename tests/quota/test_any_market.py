"""What holds in every market, whatever its queues and policies: judged from the objects alone, without asking the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drayman.api.quantity import Quantity
from quota.markets import RACK, Market, markets
from quota.queues import Object, Story
from rounds import rounds

Contested = tuple[str, str]
"""A flavor and a resource."""


def thousandths(text: Any) -> int:
    return int(Quantity.parse(str(text)).amount * 1000)


@dataclass(frozen=True)
class Judge:
    """Reads a market and a checkpoint, and names what is never right."""

    market: Market
    checkpoint: Object

    def faults(self) -> Iterator[str]:
        for name, found in self._holders.items():
            yield from self._faults_of(name, found)
        for root in self._tree[""]:
            for what in self._contested:
                yield from self._excesses(root, what)
        yield from self._crowded_nodes()
        for event in self.checkpoint["events"]:
            if event["type"] == "preempted":
                yield from self._wrongs(event)

    # Workloads.

    @cached_property
    def _holders(self) -> dict[str, Object]:
        found = self.checkpoint["workloads"].items()
        return {key.partition("/")[2]: each for key, each in found if each["status"] == "admitted"}

    def _faults_of(self, name: str, found: Object) -> Iterator[str]:
        asked = self.market.workloads[name]["podSets"]
        if [each["name"] for each in found["podSets"]] != [each["name"] for each in asked]:
            yield f"{name} has not got all of its pod sets"
            return
        for wanted, got in zip(asked, found["podSets"], strict=True):
            least = wanted.get("minCount", wanted["count"])
            if not least <= got["count"] <= wanted["count"]:
                yield f"{name}: {got['count']} pods of {wanted['name']}"
            yield from self._wrong_amounts(name, wanted, got)
            yield from self._wrong_places(name, wanted, got)

    def _wrong_amounts(self, name: str, wanted: Object, got: Object) -> Iterator[str]:
        covered = {
            resource
            for group in self.market.queues[self.market.workloads[name]["queueName"]][
                "resourceGroups"
            ]
            for resource in group["coveredResources"]
        }
        container = wanted["template"]["spec"]["containers"][0]
        asked = {**container["resources"]["requests"], "pods": "1"}
        for resource, quantity in asked.items():
            total = thousandths(quantity) * got["count"]
            if resource in covered and thousandths(got["usage"].get(resource, 0)) != total:
                yield f"{name}: {got['usage']} of {resource} for {got['count']} pods"
            if resource not in covered and resource != "pods" and total:
                yield f"{name} has quota, and nobody has any of {resource}"
        if "g" in got["flavors"].values() and "tolerations" not in wanted["template"]["spec"]:
            flavor = next(
                e
                for e in self.market.objects
                if isinstance(e, dict) and e["metadata"]["name"] == "g"
            )
            if flavor["spec"]["nodeTaints"]:
                yield f"{name} does not tolerate its flavor"

    def _wrong_places(self, name: str, wanted: Object, got: Object) -> Iterator[str]:
        request = wanted.get("topologyRequest")
        if request is None and "h" not in got["flavors"].values():
            return
        if got["count"] and not set(got["flavors"].values()) & {"h"} and got["usage"]:
            yield f"{name} asks for places and is in a flavor that has none"
        domains = got.get("topology", {}).get("domains", [])
        if domains and sum(number for _, number in domains) != got["count"]:
            yield f"{name} has places for {domains} and {got['count']} pods"
        if request and "required" in request and domains:
            depth = 1 if request["required"] == RACK else 2
            # A topology that ends with host names may name these alone, and they tell the rack.
            tops = {(d[-1][0] if depth == 1 else d[-1]) for d, _ in domains}
            if len(tops) > 1:
                yield f"{name} is spread over {sorted(tops)}"

    def _crowded_nodes(self) -> Iterator[str]:
        left: Counter[tuple[str, str]] = Counter()
        for each in self.market.objects:
            if isinstance(each, dict) and each["kind"] == "Node":
                for resource, amount in each["status"]["allocatable"].items():
                    left[each["metadata"]["name"], resource] = thousandths(amount)
        for name, found in self._holders.items():
            for wanted, got in zip(
                self.market.workloads[name]["podSets"], found["podSets"], strict=True
            ):
                container = wanted["template"]["spec"]["containers"][0]
                for domain, number in got.get("topology", {}).get("domains", []):
                    for resource, amount in container["resources"]["requests"].items():
                        left[domain[-1], resource] -= number * thousandths(amount)
        yield from (f"{where} is too full" for where, amount in left.items() if amount < 0)

    # Quota.

    @cached_property
    def _tree(self) -> dict[str, list[str]]:
        """The children of every cohort; of none, the roots. Cohorts and queues have different names."""
        tree: dict[str, list[str]] = {"": []}
        for name, spec in self.market.cohorts.items():
            tree.setdefault(spec.get("parentName", ""), []).append(name)
        for name, spec in self.market.queues.items():
            tree.setdefault(spec["cohortName"], []).append(name)
        return tree

    @cached_property
    def _quotas(self) -> dict[tuple[str, Contested], Object]:
        specs = {**self.market.cohorts, **self.market.queues}
        return {
            (name, (flavor["name"], each["name"])): each
            for name, spec in specs.items()
            for group in spec.get("resourceGroups", ())
            for flavor in group["flavors"]
            for each in flavor["resources"]
        }

    @cached_property
    def _contested(self) -> list[Contested]:
        return sorted({what for _, what in self._quotas})

    @cached_property
    def _used(self) -> Counter[tuple[str, Contested]]:
        used: Counter[tuple[str, Contested]] = Counter()
        for name, found in self._holders.items():
            for pod_set in found["podSets"]:
                for resource, flavor in pod_set["flavors"].items():
                    where = self.market.workloads[name]["queueName"]
                    amount = thousandths(pod_set["usage"].get(resource, 0))
                    used[where, (flavor, resource)] += amount
        return used

    def _excesses(self, root: str, what: Contested) -> Iterator[str]:
        """Where more is used than the quota of a subtree and what it may borrow."""

        def visit(node: str) -> tuple[int, int]:
            """What a node lends upwards at most, and what it uses of what others have."""
            quota = self._quotas.get((node, what), {})
            subtree, used = thousandths(quota.get("nominalQuota", 0)), self._used[node, what]
            for child in self._tree.get(node, ()):
                lent, taken = visit(child)
                subtree, used = subtree + lent, used + taken
            most = subtree
            if node != root:
                most = 10**9
                if "borrowingLimit" in quota:
                    most = subtree + thousandths(quota["borrowingLimit"])
            if used > most:
                found.append(f"{node} uses {used} of {what} and may use {most}")
            lent = subtree
            if "lendingLimit" in quota:
                lent = min(subtree, thousandths(quota["lendingLimit"]))
            return lent, max(0, used - (subtree - lent))

        found: list[str] = []
        visit(root)
        yield from found

    # Preemption.

    def _wrongs(self, event: Object) -> Iterator[str]:
        """Whom the policies of a queue do not let it drive out."""
        by, victim = (event[each].partition("/")[2] for each in ("by", "workload"))
        mine, theirs = self.market.workloads[by], self.market.workloads[victim]
        policies = self.market.queues[mine["queueName"]]["preemption"]
        own = mine["queueName"] == theirs["queueName"]
        policy = policies["withinClusterQueue" if own else "reclaimWithinCohort"]
        if own != (event["reason"] == "InClusterQueue"):
            yield f"{by} drives out {victim}: {event['reason']}"
        if policy == "Never" or (
            policy == "LowerPriority" and theirs["priority"] >= mine["priority"]
        ):
            yield f"{by} drives out {victim} with the policy {policy}"
        if event["reason"] == "InCohortFairSharing" and self.market.config is None:
            yield f"{by} drives out {victim} for shares that nobody has asked for"
        if event["reason"] == "InCohortReclaimWhileBorrowing":
            force = policies.get("borrowWithinCohort", {})
            threshold = force.get("maxPriorityThreshold", theirs["priority"])
            if force.get("policy") != "LowerPriority" or theirs["priority"] > threshold:
                yield f"{by} drives out {victim} by force"


def opened(market: Market) -> Story:
    return Story(*market.objects, config=market.config)


@settings(max_examples=rounds(60))
@given(markets(), st.data())
def test_every_market_comes_to_rest_and_breaks_no_rule(market: Market, data: st.DataObject) -> None:
    """After each wave of workloads, and when some of the first have ended: no quota is exceeded, and nobody is driven out unrightly."""
    story = opened(market)
    for wave in market.waves:
        story.create(*wave)
        checkpoint = story.settle()
        assert list(Judge(market, checkpoint).faults()) == []
    admitted = sorted(story.admitted())
    for name in admitted:
        if data.draw(st.booleans()):
            story.finish(name)
    assert list(Judge(market, story.settle()).faults()) == []


@settings(max_examples=rounds(40))
@given(markets(), st.data())
def test_changes_of_queues_disturb_nobody(market: Market, data: st.DataObject) -> None:
    """Where nobody may preempt, whoever has quota keeps it, whatever becomes of quotas, cohorts and flavors; and all comes to rest."""
    for spec in market.queues.values():
        spec["preemption"] = {"withinClusterQueue": "Never", "reclaimWithinCohort": "Never"}
    story = opened(market)
    story.create(*market.waves[0])
    before = story.admitted()
    for name in data.draw(st.lists(st.sampled_from(sorted(market.queues)), max_size=3)):
        other = data.draw(st.sampled_from(sorted(market.queues)))
        change = data.draw(
            st.sampled_from(
                [
                    {"cohortName": "root"},
                    {"cohortName": "elsewhere"},
                    {"resourceGroups": market.queues[other]["resourceGroups"]},
                    {"stopPolicy": "Hold"},
                    {"queueingStrategy": "StrictFIFO"},
                ]
            )
        )
        story.patch("ClusterQueue", name, {"spec": change})
    if len(market.cohorts) > 1 and data.draw(st.booleans()):
        story.patch("Cohort", "root", {"spec": {"parentName": "c0"}})
    if data.draw(st.booleans()):
        story.delete("ResourceFlavor", data.draw(st.sampled_from(["f", "g", "h"])))
    assert before <= story.admitted()
    story.create(*market.waves[1])
    assert before <= story.admitted()
