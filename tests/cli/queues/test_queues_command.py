"""`drayman queues` and `drayman queue` on a snapshot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from drayman.cli.main import cli
from drayman.cli.queues.bars import WIDTH, bar
from drayman.questions.queues.overview import overview
from drayman.simulate.snapshot import snapshot
from explain.hall import Hall


def hall() -> Hall:
    found = (
        Hall()
        .flavor("h100")
        .cohort("all")
        .queue("team-a", "all", h100=4)
        .queue("team-b", "all", h100=4)
    )
    found.workload("train", "team-a", 6, has="h100", runs="2h").workload("next", "team-a", 4)
    return found.queue("closed", h100=1, more={"stopPolicy": "Hold"})


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "cluster.yaml"
    path.write_bytes(b"".join(b"---\n" + each + b"\n" for each in snapshot(hall().world())))
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def test_queues_are_listed_in_their_cohorts(file: str) -> None:
    """Elsewhere than on a terminal the table has no bars; columns that say nothing are left out."""
    lines = run("queues", "--snapshot", file).output.splitlines()
    assert lines[0].split() == [
        "QUEUE",
        "FLAVOR",
        "RESOURCE",
        "USED",
        "QUOTA",
        "BORROWED",
        "LENT",
        "PENDING",
    ]
    assert lines[1].strip() == "all/"
    assert lines[2].split() == ["team-a", "h100", "cpu", "6", "4", "2", "1"]
    assert lines[3].split() == ["team-b", "h100", "cpu", "0", "4", "2", "0"]
    assert "  closed: it is stopped (stopPolicy Hold)" in lines


def test_wide_has_more_columns(file: str) -> None:
    """Limits, strategies and local queues."""
    header = run("queues", "--snapshot", file, "-o", "wide").output.splitlines()[0]
    assert "FREE" in header
    assert "STRATEGY" in header
    assert "LOCAL QUEUES" in header


def test_queues_as_data(file: str) -> None:
    """The same as the answer in Python."""
    data = json.loads(run("queues", "--snapshot", file, "-o", "json").output)
    assert data["order"] == ["/all", "team-a", "team-b", "closed"]
    assert data["queues"][0]["quotas"][0]["borrowed"] == "2"


def test_one_queue(file: str) -> None:
    """Who holds it, who waits and why, and when it may start."""
    result = run("queue", "team-a", "--snapshot", file)
    assert result.exit_code == 0
    for words in (
        "default/train",
        "in 1h",
        "1. default/next",
        "QuotaInUse (not now)",
        "estimated start",
    ):
        assert words in result.output


def test_a_local_queue_is_named_with_its_namespace(file: str) -> None:
    """Without it, the message says what to do."""
    assert (
        "LocalQueue lq-team-a of namespace default"
        in run("queue", "lq-team-a", "-n", "default", "--snapshot", file).output
    )
    missing = run("queue", "lq-team-a", "--snapshot", file)
    assert missing.exit_code == 2
    assert "name it with --namespace" in missing.output


def test_explain_a_workload(file: str) -> None:
    """It waits, so the exit status is 1; position, holders and remedies are printed."""
    result = run("explain", "workload/next", "--snapshot", file)
    assert result.exit_code == 1
    for words in (
        "QuotaInUse",
        "first in ClusterQueue team-a",
        "Wait until workload default/train has ended",
    ):
        assert words in result.output


def test_a_cluster_without_queues(tmp_path: Path) -> None:
    """It is said that there are none."""
    path = tmp_path / "cluster.yaml"
    path.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n")
    said = "There are no ClusterQueues, and no Queues of the KAI Scheduler.\n"
    assert run("queues", "--snapshot", str(path)).output == said


@pytest.mark.parametrize("ascii_only", [True, False])
def test_bars_are_all_as_wide(ascii_only: bool) -> None:
    """Whatever they show; a queue without quota has none."""
    for queue in overview(hall().world()).queues:
        for row in queue.quotas:
            drawn = bar(row, ascii_only=ascii_only)
            assert len(drawn) == WIDTH
            assert drawn.isascii() == ascii_only
