"""`drayman explain` of pods that have ended: the exit status tells those that have failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from drayman.cli.main import cli
from drayman.simulate.snapshot import snapshot
from explain.scenarios.scene import Scene


@pytest.mark.parametrize(
    ("phase", "status", "says"), [("Succeeded", 0, "Runs: "), ("Failed", 1, "Failed: ")]
)
def test_the_exit_status_says_how_a_pod_has_ended(
    tmp_path: Path, phase: str, status: int, says: str
) -> None:
    """Nothing would help a pod that is over: nothing is offered."""
    scene = Scene("cpu=1").runs("etl", "cpu-0", cpu=1)
    scene.objects["pods"][-1]["status"]["phase"] = phase
    file = tmp_path / "cluster.yaml"
    file.write_bytes(b"".join(b"---\n%b\n" % text for text in snapshot(scene.world())))
    result = CliRunner().invoke(cli, ["explain", "pod/etl", "--snapshot", str(file)])
    assert result.exit_code == status, result.output
    assert result.stdout.startswith(says)
    assert "what would help" not in result.stdout
