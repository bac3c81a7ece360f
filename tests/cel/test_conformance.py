"""Recorded results of Kubernetes 1.36.4: which expressions compile, what they evaluate to, what they cost."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.resource import Device
from drayman.cel import CompileError, EvaluationError, Selector, check_selector, compile_selector

VECTORS = Path(__file__).parents[3] / "shared" / "conformance" / "cel"

pytestmark = pytest.mark.skipif(
    not VECTORS.is_dir(),
    reason="the recorded vectors are not beside the repository (../shared/conformance/cel)",
)

Json = Any


@cache
def devices() -> dict[str, tuple[str, Device]]:
    entries = json.loads((VECTORS / "devices.json").read_text())
    return {e["name"]: (e["driver"], convert(Device, e["device"])) for e in entries}


def vectors() -> list[Json]:
    if not VECTORS.is_dir():
        return []
    lines = (VECTORS / "vectors.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def compiled(vector: Json) -> Selector | None:
    try:
        return compile_selector(vector["expression"])
    except CompileError:
        return None


def outcome(selector: Selector, driver: str, device: Device) -> str:
    try:
        return str(selector.matches(driver, device)).lower()
    except EvaluationError:
        return "error"


@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector["id"])
def test_recorded_results(vector: Json) -> None:
    """Compilation, estimate, results and costs are the recorded ones."""
    want = vector["compile"]
    selector = compiled(vector)
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
