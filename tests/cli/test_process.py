"""What commands do to their process, seen from outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_QUESTION = """
import os, sys
from drayman.cli import process
if {own}:
    process.own()
process.give_way()
process.give_way()
print(os.getpriority(os.PRIO_PROCESS, 0), end="")
process.keep(object())
class Last:
    def __del__(self):
        print(" taken apart", flush=True)
last = Last()
process.leave(3)
"""


@pytest.mark.parametrize(("own", "niceness", "end"), [(True, 10, ""), (False, 0, " taken apart\n")])
def test_a_process_of_ones_own_gives_way_and_ends_at_once(
    own: bool, niceness: int, end: str
) -> None:
    """What was printed is out and the status is told; nothing is taken apart. A process of somebody else's is left as it is."""
    before = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpriority(os.PRIO_PROCESS, 0))"],
        capture_output=True,
        text=True,
        check=True,
    )
    done = subprocess.run(
        [sys.executable, "-c", _QUESTION.format(own=own)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    assert done.returncode == 3, done.stderr
    wanted = (
        min(int(before.stdout) + niceness, 19) if int(before.stdout) < 10 else int(before.stdout)
    )
    assert done.stdout == f"{wanted}{end}"
