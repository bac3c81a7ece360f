"""The fields of a result that follow from the choice of devices: entries, configuration, node selector."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from oracle.board import Entry
from oracle.model import Alternative, Claim, Model
from oracle.nodes import JsonObject


def assemble(
    model: Model,
    entries: Sequence[Entry],
    chosen: Sequence[Sequence[int]],
    *,
    repeated: bool = True,
) -> list[JsonObject]:
    """The AllocationResults of a full placement, one per claim.

    `chosen` has the index of the alternative of every request, by claim. Share ids are numbered. With `repeated` an entry of a claim's
    configuration is there for each request that it names, as Kubernetes has it.
    """
    results = []
    shares = 0
    for number, claim in enumerate(model.claims):
        mine = [entry for entry in entries if entry.claim == number]
        devices = []
        for entry in mine:
            shares += model.devices[entry.device].shareable
            devices.append(_entry(model, entry, f"share-{shares}"))
        content: JsonObject = {}
        if devices:
            content["results"] = devices
        alternatives = [r.choices[n] for r, n in zip(claim.requests, chosen[number], strict=True)]
        if config := expected_config(model, claim, alternatives, repeated=repeated):
            content["config"] = config
        result: JsonObject = {"devices": content}
        if selector := expected_node_selector(model, [entry.device for entry in mine]):
            result["nodeSelector"] = selector
        results.append(result)
    return results


def _entry(model: Model, entry: Entry, share_id: str) -> JsonObject:
    device = model.devices[entry.device]
    driver, pool, name = device.id
    made: JsonObject = {
        "request": entry.choice.name,
        "driver": driver,
        "pool": pool,
        "device": name,
    }
    made |= expected_fields(model, entry.choice, entry.device)
    if device.shareable:
        made["shareID"] = share_id
        consumed = model.consumption(entry.choice, device) or {}
        if consumed:
            made["consumedCapacity"] = {key: _plain(value) for key, value in consumed.items()}
    return made


def expected_fields(model: Model, choice: Alternative, index: int) -> JsonObject:
    """The fields copied from the request and the device."""
    spec = model.devices[index].spec
    copied = {
        "adminAccess": choice.admin or None,
        "tolerations": choice.spec.get("tolerations"),
        "bindingConditions": spec.get("bindingConditions"),
        "bindingFailureConditions": spec.get("bindingFailureConditions"),
    }
    return {name: value for name, value in copied.items() if value}


def expected_config(
    model: Model, claim: Claim, alternatives: Sequence[Alternative], *, repeated: bool
) -> list[JsonObject]:
    """Class configuration, once per class; then the claim's: each entry once if it is for a request that is served, or once for each."""
    config: list[JsonObject] = []
    served: dict[str, list[str]] = {}
    for choice in alternatives:
        served.setdefault(choice.spec["deviceClassName"], []).append(choice.name)
    for class_name, names in served.items():
        own = model.classes[class_name].get("spec", {}).get("config") or []
        config += [{"source": "FromClass", "requests": names, **item} for item in own]
    for item in (claim.spec["spec"].get("devices") or {}).get("config") or []:
        wanted = item.get("requests") or []
        hits = sum(bool({choice.parent, choice.name} & set(wanted)) for choice in alternatives)
        times = hits if repeated else min(hits, 1)
        config += [{"source": "FromClaim", **item}] * (times if wanted else 1)
    return config


def expected_node_selector(model: Model, indices: Sequence[int]) -> JsonObject | None:
    """Where the claim can be used, given its devices."""
    collected: dict[str, list[JsonObject]] = {"matchFields": [], "matchExpressions": []}
    for index in indices:
        device = model.devices[index]
        if device.scope.get("nodeName") or device.spec.get("bindsToNode"):
            return _only(model.problem["node"]["metadata"]["name"])
        selector = device.scope.get("nodeSelector")
        if selector and not device.scope.get("allNodes"):
            term = selector["nodeSelectorTerms"][0]
            for kind, kept in collected.items():
                for requirement in term.get(kind) or []:
                    if all(_key(requirement) != _key(other) for other in kept):
                        kept.append(requirement)
    term = {kind: kept for kind, kept in collected.items() if kept}
    return {"nodeSelectorTerms": [term]} if term else None


def _only(node: str) -> JsonObject:
    name_is = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchFields": [name_is]}]}


def _key(requirement: JsonObject) -> tuple[str, str, frozenset[str]]:
    values = frozenset(requirement.get("values") or ())
    return requirement["key"], requirement["operator"], values


def _plain(value: Fraction) -> str:
    """A whole number as digits, the rest in thousandths (nano where that is not exact)."""
    if value.denominator == 1:
        return str(value.numerator)
    milli = value * 1000
    return f"{milli.numerator}m" if milli.denominator == 1 else f"{int(value * 10**9)}n"
