"""Locks between tasks and between instances of a driver."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from drayman.drivers.kit.locks import Locks, ThreadLock
from patience import PATIENCE_S

HOLDER = """
import asyncio, sys
from pathlib import Path
from drayman.drivers.kit.locks import Locks

async def hold():
    async with Locks(Path(sys.argv[1])).hold("a"):
        print("held", flush=True)
        await asyncio.sleep(1000)

asyncio.run(hold())
"""


async def test_one_at_a_time_holds_a_lock_and_names_do_not_meet(tmp_path: Path) -> None:
    """Tasks of one instance and of another take turns; another name is another lock."""
    one, other = Locks(tmp_path / "lock"), Locks(tmp_path / "lock")
    inside = most = 0

    async def work(locks: Locks, name: str) -> None:
        nonlocal inside, most
        async with locks.hold(name):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(work(locks, "a") for locks in (one, other) for _ in range(5)))
    assert most == 1
    async with one.hold("a"), asyncio.timeout(PATIENCE_S), other.hold("b"):
        assert one._turns.keys() == {"a"}
    assert one._turns == other._turns == {}
    one.close()
    other.close()


async def test_a_killed_process_lets_go(tmp_path: Path) -> None:
    """However it ends: there is nothing to clean up."""
    path = tmp_path / "lock"
    locks = Locks(path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        waiting = asyncio.create_task(_take(locks))
        done, _ = await asyncio.wait([waiting], timeout=0.1)
        assert not done
        holder.kill()
    async with asyncio.timeout(PATIENCE_S):
        await waiting
    locks.close()


async def _take(locks: Locks) -> None:
    async with locks.hold("a"):
        pass


@pytest.mark.parametrize("is_another_process", [False, True])
async def test_threads_wait_for_each_other_also_in_another_process(
    tmp_path: Path, is_another_process: bool
) -> None:
    """Without a file those of one process do, with one also those that share nothing else."""
    path = tmp_path / "lock" if is_another_process else None
    one = ThreadLock()
    other = ThreadLock() if is_another_process else one

    def take() -> None:
        with other.hold(path):
            pass

    with one.hold(path):
        waiting = asyncio.create_task(asyncio.to_thread(take))
        done, _ = await asyncio.wait([waiting], timeout=0.1)
        assert not done
    async with asyncio.timeout(PATIENCE_S):
        await waiting
