"""`drayman replay quota`: a line for each scenario, and bad input that is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from drayman.cli.main import cli

SCENARIO = {"name": "empty", "steps": [{"settle": "a"}, {"settle": "b"}]}


def test_a_line_for_each_scenario(tmp_path: Path) -> None:
    """With a checkpoint for each settle."""
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(f"{json.dumps(SCENARIO)}\n\n{json.dumps({**SCENARIO, 'name': 'two'})}\n")
    arguments = ["replay", "quota", "--scenarios", str(source), "--results", str(target)]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert [line["name"] for line in lines] == ["empty", "two"]
    assert [each["label"] for each in lines[0]["checkpoints"]] == ["a", "b"]


@pytest.mark.parametrize("text", ["{", '{"name": 1}', '{"steps": [{"create": 3}]}'])
def test_bad_input_is_named_before_anything_is_written(tmp_path: Path, text: str) -> None:
    """With the file and the line."""
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(text)
    arguments = ["replay", "quota", "--scenarios", str(source), "--results", str(target)]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code != 0
    assert "in.jsonl:1" in str(result.exception or result.output) + result.output
    assert not target.exists()


@pytest.mark.parametrize(
    ("scenario", "problem"),
    [
        ({"steps": [{"finish": {"name": "w", "namespace": "default"}}]}, "no Workload default/w"),
        ({"steps": [{"delete": {"kind": "Cohort", "name": "c"}}]}, "no Cohort c"),
        (
            {"config": {"resources": {"deviceClassMappings": [{"name": "x"}]}}},
            "deviceClassMappings",
        ),
        (
            {"steps": [{"create": [{"kind": "Cohort", "metadata": {"name": "c"}, "spec": 1}]}]},
            "spec",
        ),
    ],
)
def test_a_scenario_that_makes_no_sense_is_named(
    tmp_path: Path, scenario: dict[str, object], problem: str
) -> None:
    """With what is wrong with it, and nothing is written."""
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps({"name": "odd", **scenario}))
    arguments = ["replay", "quota", "--scenarios", str(source), "--results", str(target)]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    said = str(result.exception)
    assert "scenario odd" in said
    assert problem in said
    assert not target.exists()
