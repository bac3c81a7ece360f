"""Critical errors of GPUs, as NVML reports them, and the taints that they call for. They stay until the driver is started anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Final

from drayman.drivers.kit.model import NO_SCHEDULE, Health
from drayman.drivers.nvidia.nvml import GpuLostError, Nvml

XID: Final = "gpu.nvidia.com/xid"
LOST: Final = "gpu.nvidia.com/gpu-lost"
UNMONITORED: Final = "gpu.nvidia.com/unmonitored"
OF_PROGRAMS: Final = frozenset({13, 31, 43, 45, 68, 109})
"""Errors that a program causes and that do not outlast it: they are only told."""
NO_EFFECT: Final = "None"
"""Of a taint that only informs."""
_WAIT_S: Final = 1.0
"""Whoever divides a GPU, or ends the driver, waits that long."""


@dataclass(slots=True)
class Errors:
    """What has been reported so far, by the UUID of the GPU."""

    ignored: frozenset[int] = OF_PROGRAMS
    """Errors that are only told."""
    xids: dict[str, int] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    """GPUs that have fallen off the bus."""
    is_one_lost: bool = False
    """Whether a GPU has, or had an error, and it cannot be told which: any of them may be the one."""
    silent: frozenset[str] = frozenset()

    def add(self, uuid: str, xid: int) -> None:
        """The worst one of a GPU counts: one of its own is not forgotten for one of a program."""
        if not uuid:
            self.is_one_lost = True
        elif uuid not in self.xids or self.xids[uuid] in self.ignored:
            self.xids[uuid] = xid

    def report(self, device: str, uuid: str) -> Health:
        """About a device that is a GPU or a part of it."""
        if self.is_one_lost or uuid in self.lost:
            told = "the GPU is lost" if uuid in self.lost else "a GPU is lost"
            return Health(device=device, healthy=False, message=told, taint_key=LOST)
        xid = self.xids.get(uuid)
        if xid is not None:
            only_told = xid in self.ignored
            return Health(
                device=device,
                healthy=None if only_told else False,
                message=f"XID {xid}",
                taint_key=XID,
                taint_value=str(xid),
                effect=NO_EFFECT if only_told else NO_SCHEDULE,
            )
        if uuid in self.silent:
            told = "the GPU does not report errors"
            return Health(
                device=device,
                healthy=None,
                message=told,
                taint_key=UNMONITORED,
                effect=NO_EFFECT,
            )
        return Health(device=device, healthy=True)


class _Watch:
    """A set of events of NVML. Whoever uses it last frees it: it must not go while NVML waits in it."""

    def __init__(self, nvml: Nvml, uuids: frozenset[str]) -> None:
        self._nvml = nvml
        self.uuids = uuids
        self._events, silent = nvml.watch(sorted(uuids))
        self.silent = frozenset(silent)
        self._lock = Lock()
        self._waits = self._is_closed = False
        self.freed = Event()

    def wait(self) -> tuple[str, int] | None:
        """An error, if there is one within a while. Raises GpuLostError and the library's error."""
        with self._lock:
            if self._is_closed:
                return None
            self._waits = True
        try:
            return self._nvml.wait(self._events, _WAIT_S)
        finally:
            with self._lock:
                self._waits = False
                if self._is_closed:
                    self._free()

    def close(self) -> None:
        """Returns at once; `freed` says when it is gone."""
        with self._lock:
            if not (self._is_closed or self._waits):
                self._free()
            self._is_closed = True

    def _free(self) -> None:
        self._nvml.forget(self._events)
        self.freed.set()


class Monitor:
    """Follows the errors of the GPUs of a machine."""

    def __init__(self, nvml: Nvml, ignored: Iterable[int] = ()) -> None:
        """`ignored` are errors that only inform, beside those of programs."""
        self._nvml = nvml
        self._gpus: Mapping[str, str] = {}
        self._errors = Errors(OF_PROGRAMS.union(ignored))
        self._watch: _Watch | None = None
        self._suspensions = 0
        self._changing = Lock()

    def follow(self, gpus: Mapping[str, str], lost: Iterable[str] = ()) -> None:
        """The devices that there are now, with the UUIDs of their GPUs, and those of the GPUs that are found to be lost."""
        with self._changing:
            self._gpus = dict(gpus)
            self._errors.lost.update(lost)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Meanwhile no GPU is followed, so that nothing here keeps it busy. Blocks until that is so."""
        with self._changing:
            self._suspensions += 1
            closing = self._drop()
        try:
            if closing is not None:
                closing.freed.wait()
            yield
        finally:
            with self._changing:
                self._suspensions -= 1

    async def run(self) -> AsyncIterator[list[Health]]:
        """All that is known, now and whenever it changes. Raises the library's error."""
        said: list[Health] | None = None
        try:
            while True:
                self._start()
                known = self._reports()
                if known != said:
                    said = known
                    yield known
                watch = self._watch
                if watch is None or self._errors.is_one_lost:  # it is reported over and over
                    await asyncio.sleep(_WAIT_S)
                else:
                    await asyncio.to_thread(self._next, watch)
        finally:
            with self._changing:
                self._drop()

    def _reports(self) -> list[Health]:
        with self._changing:
            return [self._errors.report(device, uuid) for device, uuid in self._gpus.items()]

    def _start(self) -> None:
        """Follow the GPUs that there are."""
        with self._changing:
            uuids = frozenset(self._gpus.values()) - self._errors.lost
            if self._suspensions or (self._watch and self._watch.uuids == uuids):
                return
            self._drop()
            if uuids:
                self._watch = _Watch(self._nvml, uuids)
                self._errors.silent = self._watch.silent

    def _drop(self) -> _Watch | None:
        closing, self._watch = self._watch, None
        if closing is not None:
            closing.close()
        return closing

    def _next(self, watch: _Watch) -> None:
        """Take in an error, if there is one within a while."""
        try:
            found = watch.wait()
        except GpuLostError:
            lost = [uuid for uuid in watch.uuids if not self._nvml.is_there(uuid)]
            with self._changing:
                self._errors.lost.update(lost)
                self._errors.is_one_lost = self._errors.is_one_lost or not lost
            return
        if found is not None:
            with self._changing:
                self._errors.add(*found)
