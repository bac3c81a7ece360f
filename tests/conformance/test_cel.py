"""Recorded CEL selectors: which expressions compile, what they evaluate to on each device, what they cost."""

from __future__ import annotations

from functools import cache

import pytest

from conformance.records import JsonObject, records
from drayman.api.codec import convert
from drayman.api.resource import Device
from drayman.cel.device import Selector, check_selector, compile_selector
from drayman.cel.errors import CompileError, EvaluationError


@cache
def devices() -> dict[str, tuple[str, Device]]:
    entries = records("cel/devices")
    return {e["name"]: (e["driver"], convert(Device, e["device"])) for e in entries}


def compiled(expression: str) -> Selector | None:
    try:
        return compile_selector(expression)
    except CompileError:
        return None


def outcome(selector: Selector, driver: str, device: Device) -> str:
    try:
        return str(selector.matches(driver, device)).lower()
    except EvaluationError:
        return "error"


@pytest.mark.parametrize("vector", records("cel/vectors"), ids=lambda vector: vector["id"])
def test_recorded_results(vector: JsonObject) -> None:
    """Compilation, estimate, results and costs are the recorded ones."""
    want = vector["compile"]
    selector = compiled(vector["expression"])
    assert (selector is not None) == want["ok"]
    problem = check_selector(vector["expression"], stored=False)
    assert (problem is None or problem.kind == "Forbidden") == vector["compile_new_ok"]
    if selector is None:
        return
    assert selector.max_cost == want["max_cost"]
    assert str(selector.output_type) == want["output_type"]
    for result in vector["results"]:
        driver, device = devices()[result["device"]]
        exact = selector.evaluate(driver, device)
        value = "error" if exact.error is not None else str(exact.value).lower()
        assert value == result["result"], result["device"]
        assert exact.cost == result.get("cost", exact.cost), result["device"]
        if selector.max_cost < 10_000:
            assert outcome(selector, driver, device) == result["result"], result["device"]
