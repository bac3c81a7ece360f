"""`drayman quota diff`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from drayman.cli.main import cli
from drayman.simulate.snapshot import snapshot
from explain.hall import Hall

SAME: Final = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
DOUBLED: Final = SAME + (
    "resources: {transformations: [{input: cpu, strategy: Replace, outputs: {cpu: 2}}]}\n"
)
TEXT: Final = """\
2 pending and 1 admitted of 3 workloads would change price.
says something else: resources.transformations

default/next and 1 other in queue lq-team-a, pending
  now  4 cpu
  then 8 cpu
default/train in queue lq-team-a, admitted
  now  6 cpu
  then 12 cpu

Admitted workloads keep what they hold until they are queued again.
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    hall = Hall().flavor("h100").queue("team-a", h100=8).workload("train", "team-a", 6, has="h100")
    hall.workload("next", "team-a", 4).workload("other", "team-a", 4)
    written = snapshot(hall.world())
    (tmp_path / "cluster.yaml").write_bytes(b"".join(b"---\n" + each + b"\n" for each in written))
    (tmp_path / "same.yaml").write_text(SAME)
    (tmp_path / "doubled.yaml").write_text(DOUBLED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(config: str, *arguments: str) -> Result:
    line = ["quota", "diff", "--config", config, "--snapshot", "cluster.yaml", *arguments]
    return CliRunner().invoke(cli, line, prog_name="drayman")


def test_changes_are_counted_and_shown_together_where_they_are_alike(folder: Path) -> None:
    """Status 1, as of diff."""
    result = asked("doubled.yaml")
    assert (result.exit_code, result.output) == (1, TEXT)


def test_changes_as_data(folder: Path) -> None:
    """One by one."""
    answer = json.loads(asked("doubled.yaml", "-o", "json").output)
    assert (answer["pending"], answer["admitted"], len(answer["changes"])) == (2, 1, 3)
    assert answer["changes"][0]["then"] == {"resources": {"cpu": "8"}}


def test_nothing_changes(folder: Path) -> None:
    """Status 0."""
    result = asked("same.yaml")
    assert (result.exit_code, result.output) == (
        0,
        "No price changes: 3 workloads looked at.\n",
    )


def test_a_file_that_is_no_configuration(folder: Path) -> None:
    """Status 2, with the name of the file."""
    result = asked("cluster.yaml")
    assert result.exit_code == 2
    assert "cluster.yaml" in result.output
