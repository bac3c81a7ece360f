"""Claims that several workloads use, in the engine: one of them pays, the ledger knows it, and a new engine comes to the same."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drayman.api.codec import convert, to_dict
from drayman.api.core import Namespace
from drayman.api.kueue import ClusterQueue, LocalQueue, ResourceFlavor
from drayman.api.kueue_workload import Workload
from drayman.placement.state import ClusterState
from drayman.quota.amounts import FlavorResource
from drayman.quota.claims.records import CLAIMS, text_of
from drayman.quota.decisions import Preempted, Refused, Reserved
from drayman.quota.settings import settings_of
from drayman.quota.state import QuotaState
from oracle.build import exactly
from quota.charging.pricing_cases import cluster, pricing
from quota.charging.test_claim_users import MPS, SLICES
from quota.charging.test_in_the_engine import named, pod_set
from quota.charging.test_limitations_are_lifted import claim

GPUS = FlavorResource("f", "gpus")
PRICE = {"whole": 2, "sliced": 8, "quarters": 8}
"""Of claims, by name."""


def world() -> ClusterState:
    claims = [
        claim("whole", exactly(count=2)),
        claim("sliced", exactly(count=8), config=[SLICES]),
        claim("quarters", exactly(count=8), config=[MPS]),
    ]
    return cluster(claims=claims, templates={"t": [exactly()]})


class Objects:
    """An engine, and the Workloads as they are written by whoever drives it."""

    def __init__(self, quota: int, queues: str = "qr", **preemption: Any) -> None:
        self.state = world()
        self.quota = {"quota": quota, "queues": queues, "preemption": preemption}
        self.made: dict[str, Workload] = {}
        self.engine = self.begun()

    def begun(self, told: list[str] | None = None) -> QuotaState:
        """A new engine that is told of the Workloads, in some order."""
        engine = QuotaState(settings_of({}), pricing(self.state))
        engine.set_namespace(convert(Namespace, {"metadata": {"name": "default"}}))
        engine.set_flavor(convert(ResourceFlavor, named("f")))
        resources = [{"name": "gpus", "nominalQuota": str(self.quota["quota"])}]
        groups = [
            {"coveredResources": ["gpus"], "flavors": [{"name": "f", "resources": resources}]}
        ]
        for name in self.quota["queues"]:
            spec = {"namespaceSelector": {}, "resourceGroups": groups}
            spec["preemption"] = self.quota["preemption"]
            engine.set_cluster_queue(convert(ClusterQueue, named(name, **spec)), 0.0)
            engine.set_local_queue(convert(LocalQueue, named(name, clusterQueue=name)), 0.0)
        for name in told or list(self.made):
            engine.set_workload(self.made[name], 0.0)
        return engine

    def submit(self, name: str, queue: str, *claims: str, own: int = 0, priority: int = 0) -> None:
        sets = [pod_set("main", max(1, own), *(["t"] if own else []), claims=claims)]
        body = named(name, queueName=queue, podSets=sets, priority=priority)
        self.made[name] = convert(Workload, body)
        self.engine.set_workload(self.made[name], 0.0)

    def end(self, name: str) -> None:
        del self.made[name]
        self.engine.remove_workload(f"default/{name}")

    def decide(self) -> list[str]:
        """Cycles until nothing new comes of them; quota is written into objects. Who got some."""
        given: list[str] = []
        while True:
            decisions = self.engine.cycle(1.0)
            fresh = [each for each in decisions if isinstance(each, Reserved)]
            for each in fresh:
                self.write(each)
                given.append(each.key.partition("/")[2])
            if not fresh:
                return given

    def write(self, decision: Reserved) -> None:
        name = decision.key.partition("/")[2]
        body = to_dict(self.made[name])
        body["metadata"]["annotations"] = {CLAIMS: text_of(decision.claims)}
        since = "2026-01-01T00:00:00Z"
        condition = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": since}
        body["status"] = {"conditions": [condition], "admission": to_dict(decision.admission)}
        self.made[name] = convert(Workload, body)
        self.engine.set_workload(self.made[name], 0.0)

    def catch_up(self) -> list[str]:
        """Objects come to say what their workloads are charged. Which ones said something else."""
        behind = []
        for key in self.engine.claims.take_changed():
            entry = self.engine.entries[key]
            found = self.engine.claims.as_charged(entry)
            assert entry.holding is not None
            assert found is not None
            if found != (entry.holding.admission, entry.holding.claims):
                behind.append(key.partition("/")[2])
                self.write(Reserved(key, *found))
        return behind

    def charges(self, engine: QuotaState | None = None) -> dict[str, int]:
        """What workloads with quota are charged, by name."""
        entries = (engine or self.engine).entries
        return {
            key.partition("/")[2]: entry.holding.usage.quota.get(GPUS, 0)
            for key, entry in entries.items()
            if entry.holding is not None
        }

    def said(self, name: str) -> str:
        """What the object of a workload says that it uses."""
        admission = (to_dict(self.made[name]).get("status") or {})["admission"]
        return str(admission["podSetAssignments"][0].get("resourceUsage", {}).get("gpus", 0))


def used(engine: QuotaState) -> dict[str, int]:
    """What the ledger has, by queue."""
    return {name: node.usage.get(GPUS, 0) for name, node in engine.books.forest.queues.items()}


def test_a_claim_is_paid_for_once_and_the_charge_moves_on() -> None:
    """The second user gets in although there is no quota for the claim twice. When the first ends, it pays, in its own queue."""
    objects = Objects(quota=2)
    objects.submit("a", "q", "whole")
    objects.submit("b", "r", "whole", own=1)
    assert objects.decide() == ["a", "b"]
    assert objects.charges() == {"a": 2, "b": 1}
    assert used(objects.engine) == {"q": 2, "r": 1}
    objects.end("a")
    assert objects.charges() == {"b": 3}
    assert used(objects.engine) == {"q": 0, "r": 3}


def test_a_queue_that_came_to_use_more_than_it_has_admits_nothing_new() -> None:
    """Until it uses less again. Nobody is stopped for what others have left."""
    objects = Objects(quota=2)
    objects.submit("a", "q", "whole")
    objects.submit("b", "r", "whole", own=1)
    objects.decide()
    objects.submit("c", "r", own=1)
    objects.end("a")
    assert objects.decide() == []
    objects.end("b")
    assert objects.decide() == ["c"]


def test_who_waits_for_a_claim_that_somebody_else_pays_for_is_tried_again() -> None:
    """It asked for two where one was left, and asks for nothing now."""
    objects = Objects(quota=2)
    objects.submit("mine", "r", own=1, priority=1)
    objects.submit("b", "r", "whole")
    assert objects.decide() == ["mine"]
    objects.submit("a", "q", "whole")
    assert objects.decide() == ["a", "b"]
    assert objects.charges() == {"mine": 1, "a": 2, "b": 0}


def test_a_queue_without_quota_for_a_claim_has_no_users_of_it() -> None:
    """Others pay today, but the charge has to have somewhere to go."""
    objects = Objects(quota=2)
    other = named("other", namespaceSelector={}, resourceGroups=[])
    objects.engine.set_cluster_queue(convert(ClusterQueue, other), 0.0)
    local = named("other", clusterQueue="other")
    objects.engine.set_local_queue(convert(LocalQueue, local), 0.0)
    objects.submit("a", "q", "whole")
    objects.submit("b", "other", "whole")
    decisions = objects.engine.cycle(1.0)
    assert {type(each) for each in decisions} == {Reserved, Refused}
    (refused,) = [each for each in decisions if isinstance(each, Refused)]
    assert (refused.key, refused.reason) == ("default/b", "NoMatchingFlavor")


def test_nobody_is_driven_out_for_a_workload_that_it_shares_a_claim_with() -> None:
    """What it pays would have to be paid by the other one, for which there may be no quota."""
    objects = Objects(quota=2, withinClusterQueue="LowerPriority")
    objects.submit("low", "q", "whole")
    assert objects.decide() == ["low"]
    objects.submit("high", "q", "whole", own=2, priority=5)
    assert not any(isinstance(each, Preempted) for each in objects.engine.cycle(1.0))


def test_what_moves_on_is_not_taken_for_free() -> None:
    """To drive out the one that pays would free nothing: the other one would pay."""
    objects = Objects(quota=2, withinClusterQueue="LowerPriority")
    objects.submit("low", "q", "whole")
    assert objects.decide() == ["low"]
    objects.submit("other", "q", "whole", priority=9)
    assert objects.decide() == ["other"]
    objects.submit("high", "q", own=1, priority=5)
    assert not any(isinstance(each, Preempted) for each in objects.engine.cycle(1.0))


def test_a_claim_that_turned_out_to_cost_less_wakes_who_waits() -> None:
    """The price falls for good; a user that comes later is told the lower one."""
    objects = Objects(quota=2)
    objects.submit("a", "q", "whole")
    objects.submit("b", "q", own=1)
    assert objects.decide() == ["a"]
    objects.engine.claims.lower(("default", "whole"), {"gpus": 1})
    assert objects.decide() == ["b"]
    assert objects.catch_up() == ["a"]
    assert objects.said("a") == "1"
    assert objects.charges(objects.begun()) == objects.charges() == {"a": 1, "b": 1}


STEPS = st.lists(
    st.tuples(
        st.sampled_from("abcdef"),
        st.sampled_from("qr"),
        st.lists(st.sampled_from(sorted(PRICE)), unique=True, max_size=2),
        st.integers(0, 2),
        st.booleans(),
    ),
    max_size=14,
)


@given(STEPS, st.sampled_from([3, 10, 40]), st.randoms())
@settings(deadline=None)
def test_charges_add_up_at_every_moment_and_after_a_restart(
    steps: list[tuple[str, str, list[str], int, bool]], quota: int, chance: Random
) -> None:
    """Whoever comes and goes: users pay the price of a claim together, the ledger has what they pay, and a new engine finds the same.

    It does so also if objects have not caught up yet, and whatever it is told of first. When they have, they say what the ledger has.
    """
    objects = Objects(quota)
    for name, queue, claims, own, catches_up in steps:
        if name in objects.made:
            objects.end(name)
        else:
            objects.submit(name, queue, *claims, own=own)
        objects.decide()
        assert_charged_once(objects)
        if catches_up:
            objects.catch_up()
            assert_charged_once(objects)
        told = list(objects.made)
        chance.shuffle(told)
        again = objects.begun(told)
        assert objects.charges(again) == objects.charges()
        assert used(again) == used(objects.engine)
    objects.catch_up()
    assert {name: str(amount) for name, amount in objects.charges().items()} == {
        name: objects.said(name) for name in objects.charges()
    }
    assert objects.catch_up() == []


def assert_charged_once(objects: Objects) -> None:
    engine = objects.engine
    for name, price in PRICE.items():
        key = ("default", name)
        users = engine.claims.users.users(key)
        paid = [engine.claims.users.charged(user)[key].get("gpus", 0) for user in users]
        assert sum(paid) == (price if users else 0)
    holders = [each for each in engine.entries.values() if each.holding is not None]
    for queue, amount in used(engine).items():
        mine = [e.holding for e in holders if e.holding and e.holding.cluster_queue == queue]
        assert amount == sum(holding.usage.quota.get(GPUS, 0) for holding in mine)


@pytest.mark.parametrize("done", [1, 2])
def test_pods_that_are_done_give_back_their_own_and_not_the_claim(done: int) -> None:
    """The claim is in use as long as any pod is there."""
    objects = Objects(quota=10)
    objects.submit("a", "q", "whole", own=3)
    objects.decide()
    body = to_dict(objects.made["a"])
    body["status"]["reclaimablePods"] = [{"name": "main", "count": done}]
    objects.engine.set_workload(convert(Workload, body), 0.0)
    assert objects.charges() == {"a": 2 + 3 - done}
