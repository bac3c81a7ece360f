"""What commands do to their process, seen from outside."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_COMMAND = """
import os
from drayman.cli import process
if {own}:
    process.own()
process.give_way()
print(os.getpriority(os.PRIO_PROCESS, 0), end="")
"""


@pytest.mark.parametrize("own", [True, False])
def test_a_process_of_ones_own_gives_way(own: bool) -> None:
    """A process of somebody else's is left as it is."""
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND.format(own=own)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == str(10 if own else os.getpriority(os.PRIO_PROCESS, 0))
