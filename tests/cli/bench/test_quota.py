"""`drayman bench quota`: what is decided alone, and with everything written."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from drayman.cli.bench import quota_load as load
from drayman.cli.bench.command import quota_line
from drayman.cli.main import cli

_FIGURE = {
    "suite": "baseline",
    "workloads": 15000,
    "queues": 30,
    "per_second": 512.4,
    "published": 43.0,
}


@pytest.mark.parametrize(
    ("figure", "line"),
    [
        (_FIGURE, "15000 workloads    30 queues    512/s, Kueue 43/s"),
        ({**_FIGURE, "published": 0.0}, "15000 workloads    30 queues    512/s"),
    ],
    ids=["with a figure of Kueue's", "without"],
)
def test_a_figure_on_one_line(figure: dict[str, object], line: str) -> None:
    """With what it is compared with, where there is something."""
    assert quota_line(figure).split(maxsplit=1) == ["baseline", line]


def test_the_suites_are_kueues() -> None:
    """In number, and in how the workloads of a queue are divided."""
    totals = {name: suite.total for name, suite in load.SUITES.items()}
    assert totals == {"baseline": 15_000, "large-scale": 50_000}
    suite = replace(load.SUITES["baseline"], workloads=10)
    priorities = [each["spec"]["priority"] for each in load.workloads(suite, devices=False)]
    assert [priorities.count(each) / 30 for each in (50, 100, 200)] == [7, 2, 1]


def test_everything_is_written_and_counted() -> None:
    """All workloads are admitted by a server of its own, with devices, in fewer transactions than there are writes."""
    words = ["bench", "quota", "--served", "--devices", "--suite", "baseline", "--part", "250"]
    result = CliRunner().invoke(cli, [*words, "--json"], prog_name="drayman")
    assert result.exit_code == 0, result.output
    figure = json.loads(result.stdout)
    assert (figure["suite"], figure["workloads"]) == ("baseline with devices", 60)
    assert 0 < figure["seconds"] <= figure["finished_seconds"]
    assert figure["per_second"] > 0
    assert 0 < figure["commits"] <= figure["transactions"]
    assert figure["peak_memory_bytes"] > 0
