"""The few selectors that random problems use, with verdicts worked out without a CEL engine."""

from __future__ import annotations

from collections.abc import Callable

from oracle.model import Model
from oracle.nodes import JsonObject
from oracle.pools import Device

GPU = "gpu.example.com"
NIC = "nic.example.com"
DRIVERS = (GPU, NIC)

Verdict = bool | None
"""True, False, or None for an error."""
_LIST_KINDS = {"ints", "bools", "strings", "versions"}


def _is_driver(driver: str) -> Callable[[Device], Verdict]:
    return lambda device: device.id[0] == driver


def _model_is(device: Device) -> Verdict:
    """Fails on devices without the attribute, and on devices of the other driver."""
    model = (device.spec.get("attributes") or {}).get("model")
    return None if device.id[0] != GPU or model is None else bool(model["string"] == "a")


def _guarded(device: Device) -> Verdict:
    return _model_is(device) is True


def _shareable(device: Device) -> Verdict:
    return bool(device.spec.get("allowMultipleAllocations"))


ONLY_GPU = f'device.driver == "{GPU}"'
ONLY_NIC = f'device.driver == "{NIC}"'
NOTHING = 'device.driver == "nobody.example.com"'
MODEL_A = f'device.attributes["{GPU}"].model == "a"'
MODEL_A_GUARDED = f'"model" in device.attributes["{GPU}"] && {MODEL_A}'
SHAREABLE = "device.allowMultipleAllocations == true"
BROKEN = "device.nosuch == 1"
"""Does not compile."""

VERDICTS: dict[str, Callable[[Device], Verdict]] = {
    ONLY_GPU: _is_driver(GPU),
    ONLY_NIC: _is_driver(NIC),
    NOTHING: _is_driver("nobody.example.com"),
    MODEL_A: _model_is,
    MODEL_A_GUARDED: _guarded,
    SHAREABLE: _shareable,
    BROKEN: lambda device: None,
}


def cel(expression: str) -> JsonObject:
    return {"cel": {"expression": expression}}


def with_verdicts(problem: JsonObject) -> JsonObject:
    """The problem with `devices`, `eligible` and `cel_errors` filled in."""
    blank: list[JsonObject] = [{} for _ in problem["claims"]]
    model = Model({**problem, "eligible": blank, "cel_errors": blank})
    eligible: list[JsonObject] = []
    errors: list[JsonObject] = []
    for claim in model.claims:
        eligible.append({})
        errors.append({})
        for choice in (choice for request in claim.requests for choice in request.choices):
            if choice.spec["deviceClassName"] not in model.classes:
                continue
            class_spec = model.classes[choice.spec["deviceClassName"]]["spec"]
            listed = [*(class_spec.get("selectors") or []), *(choice.spec.get("selectors") or [])]
            verdicts = [_verdict(model, device, listed) for device in model.devices]
            eligible[-1][choice.name] = [n for n, verdict in enumerate(verdicts) if verdict]
            if None in verdicts:
                failing = [n for n, verdict in enumerate(verdicts) if verdict is None]
                errors[-1][choice.name] = failing
    devices = [list(device.id) for device in model.devices]
    return {**problem, "devices": devices, "eligible": eligible, "cel_errors": errors}


def _verdict(model: Model, device: Device, selectors: list[JsonObject]) -> Verdict:
    for selector in selectors:
        if not model.on("DRAListTypeAttributes") and _has_list(device):
            return None
        verdict = VERDICTS[selector["cel"]["expression"]](device)
        if not verdict:
            return verdict
    return True


def _has_list(device: Device) -> bool:
    attributes = (device.spec.get("attributes") or {}).values()
    return any(set(value) & _LIST_KINDS for value in attributes)
