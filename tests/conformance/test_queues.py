"""Hierarchical queues: what the KAI Scheduler does with them, recorded, compared with what comes of the same scenarios here.

The records are not part of the repository. What counts as equal is what their README says: as many pods of each group and subgroup run, and
as many were evicted. Scenarios in which nothing was determined, or KAI does not come to rest, are only held to what is never right.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from conformance.differences import DIFFERENCES, assert_only_known_differences
from conformance.records import REFERENCE
from drayman.simulate.queue_scenarios import decoded, replayed

FOLDER: Final = REFERENCE / "queues"
FILE: Final = "queues/scenarios"
LEAST: Final = 0.95
"""Of each family, as much as this at least ends with the same pods running."""

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="../shared/conformance/queues is not there"
)


@cache
def scenarios() -> dict[str, dict[str, Any]]:
    lines = (FOLDER / "scenarios.jsonl").read_text().splitlines()
    return {each["name"]: each for each in map(json.loads, lines)}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the checker of the records says about each scenario."""
    results: Path = tmp_path_factory.mktemp("queues") / "results.jsonl"
    with results.open("wb") as out:
        for each in scenarios().values():
            out.write(msgspec.json.encode(replayed(decoded(json.dumps(each).encode()))) + b"\n")
    command = (str(FOLDER / "check_queues.py"), str(FOLDER / "scenarios.jsonl"), str(results))
    found = subprocess.run(
        (sys.executable, *command, "--json"), capture_output=True, text=True, check=False
    )
    *lines, _ = found.stdout.splitlines()
    return {each["name"]: each for each in map(json.loads, lines)}


def test_nothing_is_done_that_is_never_right(rows: dict[str, dict[str, Any]]) -> None:
    assert {name: row["violations"] for name, row in rows.items() if not row["valid"]} == {}


def test_shares_are_those_recorded(rows: dict[str, dict[str, Any]]) -> None:
    assert [name for name, row in rows.items() if row.get("fairShare") is False] == []


def test_what_is_right_is_done_where_it_is_known(rows: dict[str, dict[str, Any]]) -> None:
    """Also where KAI does something else."""
    known = [name for name, each in scenarios().items() if "right" in each]
    assert [name for name in known if not rows[name]["passed"]] == []


def test_the_same_runs_and_was_evicted(rows: dict[str, dict[str, Any]]) -> None:
    differing = {name: row["difference"] for name, row in rows.items() if not row["passed"]}
    assert_only_known_differences(FILE, rows.keys(), differing)


def test_in_each_family_the_same_runs(rows: dict[str, dict[str, Any]]) -> None:
    """Evictions apart, and where the outcome was the same in all runs of the record."""
    all_, same = Counter[str](), Counter[str]()
    for name, each in scenarios().items():
        is_compared = each["expect"]["settled"] and not each.get("recordInvalid")
        if each["determined"] and (is_compared or "right" in each):
            all_[each["family"]] += 1
            same[each["family"]] += rows[name]["running"]
    assert {family for family, number in all_.items() if same[family] < LEAST * number} == set()


def test_no_known_difference_is_about_a_scenario_that_is_gone() -> None:
    assert DIFFERENCES[FILE].keys() <= scenarios().keys()
