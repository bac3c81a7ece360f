"""`drayman replay queues`: scenarios in, one line for each out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from drayman.cli.main import cli

SCENARIO: dict[str, Any] = {
    "name": "two of three",
    "nodes": [{"name": "n1", "gpus": 2}],
    "queues": [{"name": "a", "gpu": {"quota": 2, "limit": -1, "overQuotaWeight": 1}}],
    "podGroups": [
        {
            "name": "g1",
            "queue": "a",
            "priority": 50,
            "minMember": 1,
            "pods": [{"name": f"g1-{n}", "gpus": 1} for n in range(3)],
        }
    ],
    "expect": {"ignored": True},
}


def replay(folder: Path, *lines: str) -> Result:
    (folder / "in.jsonl").write_text("\n".join(lines))
    arguments = ["replay", "queues", "--scenarios", "in.jsonl", "--results", "-"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return CliRunner().invoke(cli, arguments)


def test_a_line_for_each_scenario(tmp_path: Path) -> None:
    """What runs, what was evicted, the shares, and what the first cycle did."""
    found = replay(tmp_path, json.dumps(SCENARIO), "", json.dumps({**SCENARIO, "name": "again"}))
    assert found.exit_code == 0
    assert found.stderr == "2 scenarios, all at rest\n"
    first, second = map(json.loads, found.stdout.splitlines())
    assert first == {
        "name": "two of three",
        "placement": {"g1-0": "n1", "g1-1": "n1"},
        "evicted": {},
        "fairShare": {"a": 2.0},
        "first": {"bound": {"g1": 2}, "nominated": {}, "evicted": {}},
    }
    assert second["name"] == "again"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        pytest.param("{", "in.jsonl:1: Input data was truncated", id="not JSON"),
        pytest.param('{"name": 1}', "in.jsonl:1: Expected `str`, got `int`", id="not a scenario"),
        pytest.param(
            json.dumps(
                {
                    "name": "s",
                    "podGroups": [
                        {"name": "g", "queue": "q", "pods": [{"name": "p", "nodeName": "n"}]}
                    ],
                }
            ),
            "in.jsonl:1: pod p: there is no node n",
            id="a node that is not there",
        ),
        pytest.param(
            json.dumps(
                {
                    "name": "s",
                    "nodes": [{"name": "n", "gpus": 1}],
                    "podGroups": [
                        {
                            "name": "g",
                            "queue": "q",
                            "pods": [{"name": "p", "gpus": 2, "nodeName": "n"}],
                        }
                    ],
                }
            ),
            "scenario s: pod p does not fit on node n",
            id="more than a node has",
        ),
        pytest.param(
            '{"name": "s", "queues": [{"name": "q", "preemptMinRuntime": "soon"}]}',
            "in.jsonl:1: queue q: ",
            id="not a duration",
        ),
    ],
)
def test_what_makes_no_sense_is_named(tmp_path: Path, line: str, says: str) -> None:
    found = replay(tmp_path, line)
    assert found.exit_code == 1
    assert found.stderr.startswith(f"error: {says}")
