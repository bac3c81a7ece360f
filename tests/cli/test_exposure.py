"""A node on a machine that cannot hide the credentials of the cluster from containers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from patience import PATIENCE_S

_NO_MOUNTS = 'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all "$@"'
"""In a user namespace: no further one, and no capability that mounts need."""


@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv"))),
    reason="only root can take the permission away",
)
@pytest.mark.parametrize("command", [("up", "--port", "0", "--node"), ("node", "run")])
def test_a_warning_at_the_start(command: tuple[str, ...], tmp_path: Path) -> None:
    """Without mount namespaces, `up --node` and `node run` warn before anything else that containers can read credentials."""
    words = ("unshare", "-U", "-r", "sh", "-c", _NO_MOUNTS, "sh")
    file = tmp_path / "file"
    file.touch()
    # A data directory that is a file ends the command after the warning.
    environment = {**os.environ, "DRAYMAN_DATA_DIR": str(file)}
    done = subprocess.run(
        [*words, sys.executable, "-m", "drayman", *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    said = "warning: containers can read the credentials of the cluster and the files of other pods"
    assert f"{said}: mount namespaces are not permitted here" in done.stderr
    assert done.returncode != 0
