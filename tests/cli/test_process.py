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
process.keep(object())
class Last:
    def __del__(self):
        print(" taken apart", end="", flush=True)
last = Last()
process.leave(3)
"""


@pytest.mark.parametrize(("own", "end"), [(True, ""), (False, " taken apart")])
def test_a_process_of_ones_own_gives_way_and_ends_at_once(own: bool, end: str) -> None:
    """What was printed is out and the status is told; nothing is taken apart. A process of somebody else's is left as it is."""
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND.format(own=own)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    niceness = 10 if own else os.getpriority(os.PRIO_PROCESS, 0)
    assert done.stdout == f"{niceness}{end}"
