"""The benchmark of alignment, with a few pods: counts, no times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_best_gets_the_nearest_devices_that_are_free() -> None:
    """On every machine, asked or not; first fit does not. What is nearest is found by the benchmark itself."""
    path = os.pathsep.join(str(ROOT / name) for name in ("src", "benchmarks"))
    script = ROOT / "benchmarks" / "alignment.py"
    done = subprocess.run(
        [sys.executable, script, "--pods", "30", "--nodes", "2", "--seeds", "1"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    shares = {(line["machine"], line["policy"]): line["on_best_level"] for line in lines}
    machines = {machine for machine, _ in shares}
    assert {"dgx-h100", "dgx-h200", "dgx-b200", "gb200-nvl72", "mi300x", "p4d"} <= machines
    assert {"nd-h100-v5", "nd-a100-v4"} <= machines
    for machine in machines:
        assert shares[machine, "best"] == shares[machine, "best, stated"] == 1.0
    assert shares["all", "first-fit"] < 0.9
