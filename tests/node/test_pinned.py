"""Signals to processes that stay the same ones."""

from __future__ import annotations

import os
import select
import signal
import subprocess

import pytest

from drayman.node.pinned import pinned
from patience import PATIENCE_S


def test_a_process_that_has_ended_gets_no_signal() -> None:
    """Even if its pid belongs to another process by then, which a pid alone would reach."""
    process = subprocess.Popen(["sleep", "300"])
    with pinned(process.pid) as held:
        held.send(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        with pytest.raises(ProcessLookupError):
            held.send(signal.SIGTERM)
    with pytest.raises(ProcessLookupError), pinned(process.pid):
        raise AssertionError("there is no such process")


def test_a_group_of_processes() -> None:
    """All processes of the group that it leads get the signal."""
    script = "sleep 300 & echo $!; exec sleep 300"
    process = subprocess.Popen(
        ["sh", "-c", script], stdout=subprocess.PIPE, text=True, process_group=0
    )
    assert process.stdout is not None
    other = os.pidfd_open(int(process.stdout.readline()))
    with pinned(process.pid) as held:
        held.send(signal.SIGKILL, to_group=True)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    assert select.select([other], [], [], PATIENCE_S)[0], "the other one has not ended"
    os.close(other)
