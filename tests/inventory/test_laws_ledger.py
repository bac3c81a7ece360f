"""Laws of the ledger: commit and release undo each other, and no sequence of them gives anything twice."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from drayman.allocator import Plan, search
from drayman.api.codec import to_dict
from drayman.api.resource import ResourceClaim
from drayman.inventory import Inventory, Ledger
from drayman.inventory.ledger import LedgerConflictError
from oracle.holdings import given_twice
from oracle.nodes import JsonObject
from oracle.observed import observed, seen_in
from oracle.strategies import problems
from oracle.subject import BEST, FIRST_FIT, claims_of, inventory_of, ledger_of, node_of
from oracle.validity import violations

POLICIES = st.sampled_from([FIRST_FIT, BEST])


class Desk:
    """A node, its ledger, and the claims that were committed, each round under new names."""

    def __init__(self, problem: JsonObject) -> None:
        self.problem = problem
        self.inventory: Inventory = inventory_of(problem)
        self.ledger: Ledger = ledger_of(problem)
        self.node = node_of(problem)
        self.held: dict[str, JsonObject] = {}
        self._rounds = 0

    def claims(self) -> list[ResourceClaim]:
        """The problem's claims under names not used before."""
        self._rounds += 1
        return [
            msgspec.structs.replace(
                claim,
                metadata=msgspec.structs.replace(
                    claim.metadata, name=f"{claim.metadata.name}-{self._rounds}"
                ),
            )
            for claim in claims_of(self.problem)
        ]

    def plan(self, policy: Any) -> Plan | None:
        view = self.inventory.view(self.node, self.ledger)
        outcome = search(view, self.claims(), policy=policy)
        return outcome if isinstance(outcome, Plan) else None

    def commit(self, plan: Plan) -> None:
        self.ledger.commit(plan)
        for item in plan.claims:
            self.held[item.claim.metadata.name] = to_dict(item.allocation)

    def snapshot(self) -> Any:
        view = self.inventory.view(self.node, self.ledger)
        return seen_in(self.ledger), observed(view, claims_of(self.problem))


@given(problem=problems(), policy=POLICIES, data=st.data())
def test_commit_then_release_is_the_identity(
    problem: JsonObject, policy: Any, data: st.DataObject
) -> None:
    """Whatever the order of release, ledger and view are as if nothing had happened."""
    desk = Desk(problem)
    before = desk.snapshot()
    plan = desk.plan(policy)
    assume(plan is not None)
    assert plan is not None
    desk.commit(plan)
    for item in data.draw(st.permutations(plan.claims)):
        desk.ledger.release(item.claim)
    assert desk.snapshot() == before


@given(problem=problems(), policy=POLICIES)
def test_releasing_one_of_two_leaves_the_other(problem: JsonObject, policy: Any) -> None:
    """A release takes back what its own claim holds and nothing of anybody else."""
    desk = Desk(problem)
    first = desk.plan(policy)
    assume(first is not None)
    assert first is not None
    desk.commit(first)
    after_first = desk.snapshot()
    second = desk.plan(policy)
    assume(second is not None)
    assert second is not None
    desk.commit(second)
    for item in second.claims:
        desk.ledger.release(item.claim)
    assert desk.snapshot() == after_first


@given(problem=problems(), steps=st.lists(st.tuples(st.booleans(), POLICIES), max_size=6))
def test_no_sequence_of_commits_gives_anything_twice(
    problem: JsonObject, steps: list[tuple[bool, Any]]
) -> None:
    """Searches, commits and releases in any order: no device, share, capacity or counter has two holders."""
    desk = Desk(problem)
    committed: list[Plan] = []
    for wants_commit, policy in steps:
        if wants_commit or not committed:
            plan = desk.plan(policy)
            if plan is not None:
                desk.commit(plan)
                committed.append(plan)
        else:
            for item in committed.pop(0).claims:
                desk.ledger.release(item.claim)
                del desk.held[item.claim.metadata.name]
        assert given_twice(problem, list(desk.held.values())) == []


@given(problem=problems(), policy=POLICIES)
def test_a_plan_is_valid_on_top_of_what_was_committed(problem: JsonObject, policy: Any) -> None:
    """The second plan obeys every rule with the first plan's devices in use."""
    desk = Desk(problem)
    first = desk.plan(policy)
    assume(first is not None)
    assert first is not None
    desk.commit(first)
    second = desk.plan(policy)
    assume(second is not None)
    assert second is not None
    now = {**problem, "allocated": in_use_after(problem, list(desk.held.values()))}
    assert violations(now, [to_dict(item.allocation) for item in second.claims]) == []


@given(problem=problems(), policy=POLICIES)
def test_a_stale_plan_is_refused_and_changes_nothing(problem: JsonObject, policy: Any) -> None:
    """Of two plans for the same devices, made side by side, the second cannot be committed."""
    desk = Desk(problem)
    one, two = desk.plan(policy), desk.plan(policy)
    assume(one is not None and one.basis and two is not None)
    assert one is not None
    assert two is not None
    desk.commit(one)
    holds_something = any(
        not entry.get("adminAccess")
        for result in desk.held.values()
        for entry in result["devices"].get("results") or []
    )
    assume(holds_something)
    before = desk.snapshot()
    with pytest.raises(LedgerConflictError):
        desk.ledger.commit(two)
    assert desk.snapshot() == before


def in_use_after(problem: JsonObject, held: list[JsonObject]) -> JsonObject:
    """`allocated` of a problem after some allocations were committed."""
    devices = list(problem["allocated"].get("devices") or [])
    shared = list(problem["allocated"].get("sharedDevices") or [])
    sums = {_key(item): dict(item["consumedCapacity"]) for item in problem["allocated"].get("aggregatedCapacity") or []}  # fmt: skip
    for entry in (e for result in held for e in result["devices"].get("results") or []):
        place = {name: entry[name] for name in ("driver", "pool", "device")}
        if entry.get("adminAccess"):
            continue
        if not entry.get("shareID"):
            devices.append(place)
            continue
        shared.append({**place, "shareID": entry["shareID"]})
        total = sums.setdefault(_key(entry), {})
        for name, value in (entry.get("consumedCapacity") or {}).items():
            total[name] = str(int(total.get(name, 0)) + int(value))
    aggregated = [
        {"driver": driver, "pool": pool, "device": device, "consumedCapacity": total}
        for (driver, pool, device), total in sums.items()
    ]
    return {"devices": devices, "sharedDevices": shared, "aggregatedCapacity": aggregated}


def _key(entry: JsonObject) -> tuple[str, str, str]:
    return entry["driver"], entry["pool"], entry["device"]
