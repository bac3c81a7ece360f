"""The recorded scenarios of Kueue's queues, replayed through the engine and judged by the recording's own checker."""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from conformance.differences import assert_only_known_differences
from conformance.records import REFERENCE
from drayman.api import codec
from drayman.simulate.quota_replay.driving import replay
from drayman.simulate.quota_replay.scenario import Scenario

FOLDER = REFERENCE / "quota"
FILE = "quota/scenarios"


@cache
def checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_quota", FOLDER / "check_quota.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def replayed() -> tuple[tuple[dict[str, Any], list[dict[str, Any]]], ...]:
    """Each scenario, and the checkpoints that it comes to."""
    lines = (FOLDER / "scenarios.jsonl").read_bytes().splitlines()
    return tuple((json.loads(each), replay(codec.decode(Scenario, each))) for each in lines)


def differing(sections: list[str]) -> dict[str, str]:
    """The scenarios that differ from what was recorded, and from what is right where the record is a defect."""
    check = checker()
    found = {}
    for scenario, checkpoints in replayed():
        failed, notes = check.compare(
            scenario, checkpoints, sections, set(sections), scenario["outcomes"]
        )
        if failed and "right" in scenario:
            failed, notes = check.one(check.righted(scenario), checkpoints, ["state"])
        if failed:
            found[scenario["name"]] = str(notes[0])
    return found


pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the recorded quota scenarios are not beside the repository"
)


@pytest.mark.parametrize(
    ("file", "sections"),
    [
        (FILE, ["state", "evictions"]),
        (f"{FILE} order", ["order", "topology"]),
        (f"{FILE} reasons", ["reasons"]),
    ],
)
def test_queues_decide_as_recorded(file: str, sections: list[str]) -> None:
    """Who holds how much of what, who was driven out and why, in which order, and why others wait."""
    names = {scenario["name"] for scenario, _ in replayed()}
    assert_only_known_differences(file, names, differing(sections))


def test_every_scenario_comes_to_rest() -> None:
    """Also those in which Kueue evicts without end."""
    restless = [
        scenario["name"]
        for scenario, checkpoints in replayed()
        if any(each.get("unsettled") for each in checkpoints)
    ]
    assert restless == []
