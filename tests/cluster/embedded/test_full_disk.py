"""A disk that refuses a write: the caller hears of it, nobody sees the write, and the store goes on when there is room again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from drayman.cluster.embedded import Store

SCRIPT = Path(__file__).with_name("full_disk.py")


def test_writes_fail_while_the_disk_is_full_and_succeed_after(tmp_path):
    """All writes under way fail together, for each may build on another; what was acknowledged before and after is kept."""
    path = tmp_path / "store.db"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(path)],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    met = json.loads(done.stdout)
    assert len(met["stored"]) + len(met["errors"]) == 55
    assert met["errors"]
    assert all(f"cannot write to {path}: " in error for error in met["errors"])
    assert sorted([*met["stored"], "before"]) == met["visible"]
    assert met["latest"] == []
    assert met["revision"] == 1 + len(met["stored"])
    assert met["after"] > met["revision"]
    with Store.open(path) as store:
        assert [s.key.name for s in store.list("pods")] == sorted([*met["visible"], "after"])
        assert store.revision == met["after"]
