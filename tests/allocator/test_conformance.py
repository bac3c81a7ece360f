"""The recorded facts about Kubernetes 1.36.4, judged by the checker that comes with them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oracle.nodes import JsonObject
from oracle.subject import BEST, FIRST_FIT, answer

CONFORMANCE = Path(__file__).parents[3] / "shared" / "conformance"
pytestmark = pytest.mark.skipif(
    not CONFORMANCE.is_dir(), reason=f"the conformance vectors are not there: {CONFORMANCE}"
)

FILES = ["table.json", "directed.jsonl", "fuzz.jsonl", "scaling.jsonl"]
EXACT_PERCENT = {"table.json": 95.0, "fuzz.jsonl": 95.0}


def recorded(name: str) -> list[JsonObject]:
    text = (CONFORMANCE / "allocator" / name).read_text()
    if name.endswith(".json"):
        return list(json.loads(text))
    return [json.loads(line) for line in text.splitlines()]


def checked(problems: list[JsonObject], policy: Any, folder: Path) -> JsonObject:
    """The checker's report on our answers."""
    asked, given = folder / "problems.jsonl", folder / "results.jsonl"
    asked.write_text("".join(json.dumps(problem) + "\n" for problem in problems))
    given.write_text("".join(json.dumps(answer(p, policy)) + "\n" for p in problems))
    command = [sys.executable, str(CONFORMANCE / "check.py"), str(asked), str(given), "--json"]
    report = subprocess.run(command, capture_output=True, text=True, check=False)
    assert report.stdout, report.stderr
    return dict(json.loads(report.stdout))


def assert_conforms(report: JsonObject) -> None:
    assert report["invalid"] == []
    assert report["missing"] == []
    assert report["wrong_outcome"] == []
    assert report["outcome"]["matched"] == report["outcome"]["of"]


def assert_follows_the_rules(report: JsonObject) -> None:
    """Where upstream departs from its rules, we do not."""
    for name, quirk in report["quirks"].items():
        assert quirk["follow_rules"] == quirk["problems"], name


@pytest.mark.parametrize("name", FILES)
def test_first_fit_gives_upstreams_answers(name: str, tmp_path: Path) -> None:
    """Every outcome is upstream's or, where that is a bug, what the rules say; nearly all devices are upstream's too."""
    report = checked(recorded(name), FIRST_FIT, tmp_path)
    assert_conforms(report)
    assert_follows_the_rules(report)
    assert report["exact"]["percent"] >= EXACT_PERCENT.get(name, 0.0)
    assert report["error_scope_differs"] == []


@pytest.mark.parametrize("name", FILES)
def test_best_allocates_where_upstream_does(name: str, tmp_path: Path) -> None:
    """Problems without an error have the same outcome under `best`, with results that are valid."""
    problems = [p for p in recorded(name) if p["expect"]["outcome"] != "error"]
    report = checked(problems, BEST, tmp_path)
    assert_conforms(report)
    assert_follows_the_rules(report)
