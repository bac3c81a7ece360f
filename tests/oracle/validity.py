"""Is an allocation valid? Checks results alone, whoever made them, one function per rule.

Written against the finished results rather than a search state, so that it can judge the searches of this package as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import combinations

from oracle.derived import expected_config, expected_fields, expected_node_selector
from oracle.model import MAX_RESULTS, Alternative, Model, device_id
from oracle.nodes import JsonObject
from oracle.quantities import amount


@dataclass(frozen=True, slots=True)
class _Given:
    """An entry of a result, resolved to the alternative it serves and the device it names."""

    claim: int
    choice: Alternative
    device: int
    entry: JsonObject


def violations(problem: JsonObject, results: list[JsonObject]) -> list[str]:
    """What is wrong with the results, each as `rule: why`; empty if they are valid."""
    model = Model(problem)
    if len(results) != len(model.claims):
        return [f"form: {len(results)} results for {len(model.claims)} claims"]
    given: list[_Given] = []
    found: list[str] = []
    for claim, result in enumerate(results):
        for entry in result["devices"].get("results") or []:
            resolved = _resolve(model, claim, entry)
            if isinstance(resolved, str):
                found.append(resolved)
            else:
                given.append(resolved)
    if found:
        return found
    for rule in (_eligibility, _availability, _taints, _capacity, _counters, _constraints, _shares):
        found += rule(model, given)
    for claim, result in enumerate(results):
        mine = [g for g in given if g.claim == claim]
        counts = list(_counts(model, claim, mine))
        found += counts or _derived(model, claim, mine, result)
    return found


def chosen_alternatives(problem: JsonObject, results: list[JsonObject]) -> list[int]:
    """The vector of chosen alternatives of valid results: an index for each `firstAvailable` request."""
    vector = []
    for claim, result in zip(Model(problem).claims, results, strict=True):
        served = {entry["request"] for entry in result["devices"].get("results") or []}
        for request in claim.requests:
            if request.listed:
                vector += [n for n, choice in enumerate(request.choices) if choice.name in served]
    return vector


def _resolve(model: Model, claim: int, entry: JsonObject) -> _Given | str:
    choices = [c for r in model.claims[claim].requests for c in r.choices]
    named = [choice for choice in choices if choice.name == entry["request"]]
    places = [n for n, device in enumerate(model.devices) if device.id == device_id(entry)]
    if len(named) != 1:
        return f"form: no request {entry['request']} in claim {claim}"
    if len(places) != 1:
        return f"pools: {device_id(entry)} is not a device of a usable pool of the node"
    return _Given(claim, named[0], places[0], entry)


def _eligibility(model: Model, given: list[_Given]) -> Iterator[str]:
    for g in given:
        if not model.eligible(g.choice, g.device):
            yield f"eligibility: {_where(model, g)}"


def _counts(model: Model, claim: int, mine: list[_Given]) -> Iterator[str]:
    if len(mine) > MAX_RESULTS:
        yield f"counts: claim {claim} has {len(mine)} entries"
    for request in model.claims[claim].requests:
        served = {g.choice.name for g in mine} & {choice.name for choice in request.choices}
        if len(served) > 1:
            yield f"counts: {request.name} is served by {sorted(served)}"
            continue
        # A request for no devices cannot be told from one that is not served.
        choice = next((c for c in request.choices if c.name in served), request.choices[0])
        got = sorted(g.device for g in mine if g.choice is choice)
        if len(set(got)) < len(got):
            yield f"counts: {choice.name} names a device twice"
        if choice.mode == "All":
            if not got or got != model.all_devices(choice):
                yield f"counts: {choice.name} wants {model.all_devices(choice)}, has {got}"
        elif len(got) != model.number(choice):
            yield f"counts: {choice.name} wants {model.number(choice)} devices, has {len(got)}"


def _availability(model: Model, given: list[_Given]) -> Iterator[str]:
    ordinary = Counter(g.device for g in given if not g.choice.admin)
    in_claim = Counter((g.claim, g.device) for g in given)
    for index, device in enumerate(model.devices):
        if ordinary[index] and device.id in model.exclusive:
            yield f"availability: {device.id} is in use"
        if not device.shareable and ordinary[index] > 1:
            yield f"availability: {device.id} is given {ordinary[index]} times"
    for (claim, index), times in in_claim.items():
        if times > 1 and not model.devices[index].shareable:
            yield f"availability: {model.devices[index].id} appears {times} times in claim {claim}"


def _taints(model: Model, given: list[_Given]) -> Iterator[str]:
    for g in given:
        if taints := model.untolerated(g.choice, model.devices[g.device]):
            yield f"taints: {_where(model, g)} does not tolerate {taints}"


def _capacity(model: Model, given: list[_Given]) -> Iterator[str]:
    totals: dict[tuple[int, str], Fraction] = {}
    for g in given:
        device = model.devices[g.device]
        consumed = model.consumption(g.choice, device)
        if consumed is None:
            yield f"capacity: {_where(model, g)} cannot be served"
            continue
        for name, value in consumed.items():
            if device.shareable:
                totals[g.device, name] = totals.get((g.device, name), Fraction(0)) + value
    for (index, name), total in totals.items():
        device = model.devices[index]
        total += model.aggregated_of(device, name)
        if total > amount(device.spec["capacity"][name]["value"]):
            yield f"capacity: {device.id} would give {total} of {name}"


def _counters(model: Model, given: list[_Given]) -> Iterator[str]:
    for pool in model.pools:
        left = model.counters_left(pool)
        over_before = model.overcommitted(pool)
        charged: set[int] = set()
        for g in given:
            device = model.devices[g.device]
            if device.id[:2] != pool.id or not device.spec.get("consumesCounters"):
                continue
            if not model.on("DRAPartitionableDevices"):
                yield f"counters: {_where(model, g)} consumes counters, which are off"
            if device.shareable and (device.id in model.in_use or g.device in charged):
                continue
            charged.add(g.device)
            if over_before:
                yield f"counters: {_where(model, g)} is in an over-committed pool"
            for key, value in device.spends.items():
                left[key] = left.get(key, Fraction(0)) - value
        if charged and not over_before and any(value < 0 for value in left.values()):
            yield f"counters: pool {pool.id} is over-committed"


def _constraints(model: Model, given: list[_Given]) -> Iterator[str]:
    for claim, content in enumerate(model.claims):
        for constraint in content.constraints:
            mine = [g for g in given if g.claim == claim and constraint.applies(g.choice)]
            if constraint.attribute is None:
                yield f"constraints: claim {claim} has an empty one"
                continue
            sets = [model.values(model.devices[g.device], constraint.attribute) for g in mine]
            if not all(sets):
                yield f"constraints: a device of claim {claim} lacks {constraint.attribute}"
            elif constraint.match and sets and not reduce(frozenset.intersection, sets):
                yield f"constraints: claim {claim} has no common {constraint.attribute}"
            elif not constraint.match and any(a & b for a, b in combinations(sets, 2)):
                yield f"constraints: claim {claim} repeats a {constraint.attribute}"


def _shares(model: Model, given: list[_Given]) -> Iterator[str]:
    taken = [s["shareID"] for s in model.problem["allocated"].get("sharedDevices") or []]
    for g in given:
        device = model.devices[g.device]
        share = g.entry.get("shareID")
        consumed = {k: amount(v) for k, v in (g.entry.get("consumedCapacity") or {}).items()}
        expected = model.consumption(g.choice, device) if device.shareable else {}
        if bool(share) != device.shareable:
            yield f"derived: shareID of {_where(model, g)}"
        if share in taken:
            yield f"derived: shareID {share} is used twice"
        if consumed != expected:
            yield f"derived: consumedCapacity of {_where(model, g)} is {consumed}, not {expected}"
        taken += [share] if share else []


def _derived(model: Model, claim: int, mine: list[_Given], result: JsonObject) -> list[str]:
    found = []
    for g in mine:
        fields = expected_fields(model, g.choice, g.device)
        names = ("adminAccess", "tolerations", "bindingConditions", "bindingFailureConditions")
        if {n: g.entry[n] for n in names if g.entry.get(n)} != fields:
            found.append(f"derived: {_where(model, g)} should have {fields}")
    alternatives = _served(model, claim, mine)
    forms = [
        expected_config(model, model.claims[claim], alternatives, repeated=repeated)
        for repeated in (False, True)
    ]
    if (result["devices"].get("config") or []) not in forms:
        found.append(f"derived: config of claim {claim}")
    selector = expected_node_selector(model, [g.device for g in mine])
    if _normal(result.get("nodeSelector")) != _normal(selector):
        found.append(f"derived: nodeSelector of claim {claim} should be {selector}")
    return found


def _served(model: Model, claim: int, mine: list[_Given]) -> list[Alternative]:
    names = {g.choice.name for g in mine}
    return [
        next((choice for choice in request.choices if choice.name in names), request.choices[0])
        for request in model.claims[claim].requests
    ]


def _normal(selector: JsonObject | None) -> list[tuple[str, str, str, tuple[str, ...]]] | None:
    if not selector:
        return None
    if len(selector["nodeSelectorTerms"]) != 1:
        return []
    return sorted(
        (kind, r["key"], r["operator"], tuple(sorted(set(r.get("values") or ()))))
        for kind, requirements in selector["nodeSelectorTerms"][0].items()
        for r in requirements
    )


def _where(model: Model, g: _Given) -> str:
    return f"{'/'.join(model.devices[g.device].id)} for {g.choice.name} of claim {g.claim}"
