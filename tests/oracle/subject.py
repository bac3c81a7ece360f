"""The product, asked in the form of problems and result lines."""

from __future__ import annotations

from drayman.allocator import Outcome, Policy, search
from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from drayman.inventory import DeviceId, Features, Holding, Inventory, Ledger
from drayman.simulate.problems import decode_problem, solve
from oracle.nodes import JsonObject
from oracle.quantities import amount

FIRST_FIT = Policy.FIRST_FIT
BEST = Policy.BEST


def answer(problem: JsonObject, policy: Policy, max_steps: int | None = None) -> JsonObject:
    """The product's result line for a problem."""
    return dict(solve(decode_problem(problem), policy, max_steps).to_line())


def inventory_of(problem: JsonObject) -> Inventory:
    """The inventory of a problem, slice by slice."""
    inventory = Inventory(Features.from_gates(problem["features"]))
    for item in problem["classes"]:
        inventory.apply_class(convert(DeviceClass, item))
    for item in problem["slices"]:
        inventory.apply_slice(convert(ResourceSlice, item))
    return inventory


def ledger_of(problem: JsonObject) -> Ledger:
    """A ledger in which one holder per entry has what the problem says is in use."""
    ledger = Ledger()
    held = problem["allocated"]
    for entry in held.get("devices") or []:
        ledger.observe(f"whole {_id(entry)}", [Holding(_id(entry))])
    sums = {_id(entry): entry["consumedCapacity"] for entry in held.get("aggregatedCapacity") or []}
    for entry in held.get("sharedDevices") or []:
        # The sum over the shares is known, not who has how much: the first share has it all.
        consumed = {name: amount(value) for name, value in sums.pop(_id(entry), {}).items()}
        whole = {name: int(value) for name, value in consumed.items()}
        holding = Holding(_id(entry), entry["shareID"], whole)
        ledger.observe(f"share {entry['shareID']}", [holding])
    return ledger


def node_of(problem: JsonObject) -> Node:
    return convert(Node, problem["node"])


def claims_of(problem: JsonObject) -> list[ResourceClaim]:
    return [convert(ResourceClaim, claim) for claim in problem["claims"]]


def ask(problem: JsonObject, policy: Policy) -> Outcome:
    """The product's answer as the library gives it."""
    view = inventory_of(problem).view(node_of(problem), ledger_of(problem))
    return search(view, claims_of(problem), policy=policy)


def _id(entry: JsonObject) -> DeviceId:
    return DeviceId(entry["driver"], entry["pool"], entry["device"])
