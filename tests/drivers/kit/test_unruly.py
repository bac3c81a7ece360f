"""Drivers that do what they must not: the kit, its node and other drivers go on, and whoever looks reads what the driver has said."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import Event

import pytest

from drayman.api.resource import Device
from drayman.drivers.kit import Claim, Hardware, Health, KitError, Prepared, PrepareError, string
from drayman.plugins.model import Failed, Ready
from drivers.kit.probing import NAME, Probe, World, names, world
from patience import PATIENCE_S

CALLED_EXIT = "the driver has called sys.exit: no card"
Fault = Callable[[], object]


def leave() -> object:
    sys.exit("no card")


def leave_with_a_status() -> object:
    sys.exit(3)


def leave_without_a_word() -> object:
    sys.exit()


def cancel() -> object:
    raise asyncio.CancelledError


def cancel_with_words() -> object:
    raise asyncio.CancelledError("no card")


def quote_a_name() -> object:
    name = os.fsdecode(b"card-\xff")
    raise PrepareError(f"{name} is broken")


def run_out() -> object:
    return next(iter(()))


FAULTS: dict[str, tuple[Fault, str]] = {
    "it exits": (leave, CALLED_EXIT),
    "it exits with a status": (leave_with_a_status, "the driver has called sys.exit with status 3"),
    "it exits without a word": (
        leave_without_a_word,
        "the driver has called sys.exit with status 0",
    ),
    "it cancels itself": (cancel, "the driver has raised asyncio.CancelledError"),
    "it says why": (cancel_with_words, "the driver has raised asyncio.CancelledError: no card"),
    "it quotes a name that is no UTF-8": (quote_a_name, r"card-\udcff is broken"),
    "its iterator is empty": (
        run_out,
        "it failed: RuntimeError: coroutine raised StopIteration",
    ),
}


@dataclass(slots=True)
class Trouble:
    """What a driver does the next time it is asked."""

    fault: Fault | None = None

    def strike(self) -> None:
        if self.fault is not None:
            self.fault()


class Asynchronous(Probe):
    """Fails in the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.preparing, self.unpreparing = Trouble(), Trouble()

    async def prepare(self, claim: Claim) -> Prepared:
        self.preparing.strike()
        return await super().prepare(claim)

    async def unprepare(self, claim: Claim) -> None:
        self.unpreparing.strike()
        await super().unprepare(claim)


class Synchronous(Asynchronous):
    """Fails in a thread, before there is a coroutine, as a driver without any would."""

    def prepare(self, claim: Claim) -> Awaitable[Prepared]:
        self.preparing.strike()
        return Probe.prepare(self, claim)

    def unprepare(self, claim: Claim) -> Awaitable[None]:
        self.unpreparing.strike()
        return Probe.unprepare(self, claim)


@pytest.mark.parametrize("kind", [Asynchronous, Synchronous])
@pytest.mark.parametrize("case", FAULTS)
async def test_a_claim_fails_with_what_the_driver_has_said(
    case: str, kind: type[Asynchronous]
) -> None:
    """When it is prepared and when it is unprepared; nothing stays half prepared, and the next call is answered as if nothing had been."""
    driver = kind()
    fault, problem = FAULTS[case]
    async with world() as w, w.plugin(driver):
        claim = await w.claim("c", "probe-0")
        driver.preparing.fault = fault
        assert await prepared(w, claim) == Failed(problem)
        assert driver.calls == [("unprepare", "c")]
        driver.preparing.fault = None
        assert isinstance(await prepared(w, claim), Ready)
        driver.unpreparing.fault = fault
        assert await w.kubelet.unprepare(NAME, claim) == Failed(problem)
        driver.unpreparing.fault = None
        assert await w.kubelet.unprepare(NAME, claim) is None


async def prepared(w: World, claim: object) -> Ready | Failed:
    """The answer of the driver, which must come long before a node gives up."""
    async with asyncio.timeout(PATIENCE_S):
        return await w.kubelet.prepare(NAME, claim)


class Undiscovered(Probe):
    """Cannot say which devices there are, when it is told to."""

    is_iterator = False

    def __init__(self) -> None:
        super().__init__()
        self.discovering = Trouble()

    def discover(self) -> Iterable[Device]:
        if self.is_iterator:
            return map(self._described, range(self.count))
        self.discovering.strike()
        return super().discover()

    def _described(self, index: int) -> Device:
        self.discovering.strike()
        return Device(name=f"probe-{index}")


@pytest.mark.parametrize("is_iterator", [False, True])
async def test_a_discovery_fails_with_what_the_driver_has_said(
    caplog: pytest.LogCaptureFixture, is_iterator: bool
) -> None:
    """On one line of the log; also if it is only said while devices are listed. What was known stays published."""
    driver = Undiscovered()
    driver.is_iterator = is_iterator
    async with world() as w, w.plugin(driver) as plugin:
        driver.discovering.fault = leave
        assert not await plugin.discover()
        assert len(plugin.devices()) == 4
    (error,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert error.getMessage() == f"driver {NAME} cannot discover its devices: {CALLED_EXIT}"
    assert not error.exc_info


class Forgetful(Probe):
    """Cannot take in what it has prepared."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.recovering = Trouble(fault)

    def recover(self, claims: Sequence[Claim]) -> None:
        self.recovering.strike()


class ForgetfulCoroutine(Forgetful):
    async def recover(self, claims: Sequence[Claim]) -> None:
        self.recovering.strike()


def lose() -> object:
    raise OSError("the bus is gone")


@pytest.mark.parametrize("kind", [Forgetful, ForgetfulCoroutine])
@pytest.mark.parametrize(
    ("fault", "problem"), [(leave, CALLED_EXIT), (lose, "OSError: the bus is gone")]
)
async def test_a_driver_that_cannot_recover_does_not_start(
    kind: type[Forgetful], fault: Fault, problem: str
) -> None:
    """The error names it, because others may start beside it."""
    async with world() as w:
        with pytest.raises(KitError) as caught:
            async with w.plugin(kind(fault)):
                pass
    assert str(caught.value) == f"driver {NAME} cannot take in what is prepared: {problem}"


class Sick(Probe):
    """Leaves when it is asked how its devices are."""

    health_every_s = 0.0

    def health(self) -> Iterable[Health]:
        sys.exit("no card")


class SickCoroutine(Probe):
    health_every_s = 0.0

    async def health(self) -> Iterable[Health]:
        sys.exit("no card")


class SickStream(Probe):
    health_every_s = 0.0

    async def health(self) -> AsyncIterator[Iterable[Health]]:
        sys.exit("no card")
        yield ()


@pytest.mark.parametrize("kind", [Sick, SickCoroutine, SickStream])
async def test_nothing_is_known_of_devices_whose_driver_leaves(kind: type[Probe]) -> None:
    """The node is told why, and claims are prepared."""
    async with world() as w, w.plugin(kind()):
        async with asyncio.timeout(PATIENCE_S):
            async for reports in w.kubelet.health(NAME):
                if reports[0].message == CALLED_EXIT:
                    break
        assert isinstance(await prepared(w, await w.claim("c", "probe-0")), Ready)


class Deaf(Probe):
    """Leaves instead of hearing of changes."""

    def __init__(self) -> None:
        super().__init__()
        self.has_followed = Event()

    async def follow(self) -> None:
        self.has_followed.set()
        sys.exit("no card")


async def test_a_driver_that_stops_following_its_devices_prepares_claims() -> None:
    """It is asked for its devices now and then, as one that never follows."""
    driver = Deaf()
    async with world() as w, w.plugin(driver):
        await asyncio.to_thread(driver.has_followed.wait, PATIENCE_S)
        assert isinstance(await prepared(w, await w.claim("c", "probe-0")), Ready)


class Mislabelling(Probe):
    """Describes its devices, and says how they are, with bytes that are not UTF-8."""

    def __init__(self, hardware: Hardware, report: Health) -> None:
        super().__init__()
        self.hardware, self.report = hardware, report

    def discover(self) -> Hardware:
        return self.hardware

    health_every_s = 0.1

    def health(self) -> Iterable[Health]:
        yield self.report


WRONG = "x\udcff"
PROBE = Device(name="probe-0")
WELL = Health(device="probe-0", healthy=True)


@pytest.mark.parametrize(
    ("hardware", "report"),
    [
        (Hardware.of([Device(name=WRONG)]), WELL),
        (Hardware.of([Device(name="probe-0", attributes={WRONG: string("x")})]), WELL),
        (Hardware(groups=((PROBE,),), labels={"example.com/x": WRONG}), WELL),
        (Hardware.of([PROBE]), Health(device="probe-0", healthy=False, taint_value=WRONG)),
    ],
    ids=["name", "attribute", "label", "taint"],
)
async def test_what_cannot_be_written_is_told_and_tried_again_when_it_is_mended(
    caplog: pytest.LogCaptureFixture, hardware: Hardware, report: Health
) -> None:
    """The driver is served meanwhile, and what is wrong is in the log."""
    driver = Mislabelling(hardware, report)
    async with world() as w, w.plugin(driver) as plugin:
        async with asyncio.timeout(PATIENCE_S):
            while r"'x\udcff'" not in caplog.text:
                await asyncio.sleep(0.02)
        driver.hardware, driver.report = Hardware.of([PROBE]), WELL
        assert await plugin.discover()
        await w.until_slices(lambda found: names(found) == ["probe-0"])
