"""How drivers end that do not finish what they have begun."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from drayman.drivers.kit import Claim, Prepared
from drayman.drivers.kit.checkpoint import Checkpoint
from drayman.drivers.kit.locks import Locks
from drayman.drivers.kit.metadata import MetadataFiles
from drayman.drivers.kit.metrics import Metrics
from drayman.drivers.kit.preparing import Preparer
from drayman.drivers.kit.threads import Threads
from drayman.plugins.model import ClaimRef
from drivers.kit.probing import NAME, NODE, Probe, World, world
from patience import PATIENCE_S

STUCK = "stuck.example.com"


class Hanging(Probe):
    """Blocks a thread for as long as it is not told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun, self.may_go_on = Event(), Event()

    def prepare(self, claim: Claim) -> Prepared:
        self.calls.append(("prepare", claim.name))
        self.has_begun.set()
        self.may_go_on.wait()
        return Prepared()


def preparer_of(w: World, driver: Probe, folder: Path, settle_s: float) -> tuple[Preparer, Locks]:
    checkpoint = Checkpoint(folder / "claims", "boot")
    checkpoint.load()
    locks = Locks(folder / "lock")
    preparer = Preparer(
        driver,
        w.cluster.client,
        checkpoint=checkpoint,
        locks=locks,
        cdi_dir=folder / "cdi",
        devices=lambda: {(NODE, each.name): each for each in driver.discover()},
        counters=lambda: (),
        threads=Threads("hanging"),
        metrics=Metrics(driver.name),
        boot_id="boot",
        files=MetadataFiles(driver.name, folder),
        describes=False,
        settle_s=settle_s,
    )
    return preparer, locks


async def test_the_end_does_not_wait_for_a_driver_for_ever(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says once which one it was, and with what; its locks are free, and what it has begun is undone before the next attempt."""
    hanging, next_one = Hanging(), Probe()
    async with world() as w, asyncio.timeout(PATIENCE_S):
        claim = await w.claim("c", "probe-0")
        ref = ClaimRef("default", "c", claim.metadata.uid)
        preparer, locks = preparer_of(w, hanging, tmp_path, settle_s=0)
        call = asyncio.create_task(preparer.prepare([ref]))
        await asyncio.to_thread(hanging.has_begun.wait)
        await preparer.settle()
        locks.close()
        await asyncio.gather(call, return_exceptions=True)
        try:
            preparer, locks = preparer_of(w, next_one, tmp_path, settle_s=PATIENCE_S)
            await preparer.prepare([ref])
            await preparer.settle()
        finally:
            locks.close()
            hanging.may_go_on.set()
    assert next_one.calls == [("unprepare", "c"), ("prepare", "c")]
    told = [each.getMessage() for each in caplog.records if NAME in each.getMessage()]
    assert told == [
        f"driver {NAME} still prepares claim default/c; ending without it, and it is undone before the claim is worked on again"
    ]


async def test_a_driver_that_hangs_ends_when_it_is_told_to() -> None:
    """Also if it is told twice, as by people who do not wait: in order, without a traceback, while a thread of it hangs on."""
    async with world() as w:
        claim = await w.cluster.allocate("s", STUCK, NODE, {"a": "stuck-0"})
        log = w.kubelet.registry_dir.parent / "log"
        hold = log.with_name("hold")
        hold.touch()
        driver = start(w, log, hold)
        try:
            await w.kubelet.registered(STUCK)
            call = asyncio.create_task(w.kubelet.prepare(STUCK, claim))
            async with asyncio.timeout(PATIENCE_S):
                while not log.exists() or "prepared s" not in log.read_text().split("\n"):
                    await asyncio.sleep(0.02)
                driver.send_signal(signal.SIGINT)
                while list(w.kubelet.registry_dir.iterdir()):
                    await asyncio.sleep(0.02)
                driver.send_signal(signal.SIGINT)
                said, complaints = await asyncio.to_thread(driver.communicate)
            await asyncio.gather(call, return_exceptions=True)
            assert (driver.returncode, said.splitlines()[-1]) == (0, "stopped")
            (complaint,) = complaints.splitlines()
            assert f"driver {STUCK} still prepares claim default/s; ending without it" in complaint
        finally:
            driver.kill()
            driver.wait()


def start(w: World, log: Path, hold: Path) -> subprocess.Popen[str]:
    """The driver of `stuck.py` in a process of its own."""
    options = w.kubelet.options(STUCK)
    return subprocess.Popen(
        [
            *(sys.executable, str(Path(__file__).with_name("stuck.py")), "--node", NODE),
            *("--kubeconfig", str(w.cluster.kubeconfig)),
            *("--plugin-dir", str(options.plugin_dir)),
            *("--registry-dir", str(options.registry_dir), "--cdi-dir", str(options.cdi_dir)),
            *("--log", str(log), "--hold", str(hold)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
