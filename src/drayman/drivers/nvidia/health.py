"""Critical errors of GPUs, as NVML reports them, and the taints that they call for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from drayman.drivers.kit.model import NO_SCHEDULE, Health
from drayman.drivers.nvidia.nvml import GpuLostError, Nvml

XID: Final = "gpu.nvidia.com/xid"
LOST: Final = "gpu.nvidia.com/gpu-lost"
OF_PROGRAMS: Final = frozenset({13, 31, 43, 45, 68, 109})
"""Errors that a program causes and that do not outlast it: they are only told."""
_WAIT_S: Final = 5.0


@dataclass(slots=True)
class Errors:
    """What has been reported so far, by the UUID of the GPU."""

    xids: dict[str, int] = field(default_factory=dict)
    lost: bool = False
    """Whether a GPU has fallen off the bus, or there was an error of one that cannot be told: any of them may be the one."""
    silent: frozenset[str] = frozenset()

    def add(self, uuid: str, xid: int) -> None:
        """The worst one of a GPU counts: one of its own is not forgotten for one of a program."""
        if not uuid:
            self.lost = True
        elif uuid not in self.xids or self.xids[uuid] in OF_PROGRAMS:
            self.xids[uuid] = xid

    def reports(self, device: str, uuid: str) -> Iterator[Health]:
        """About a device that is a GPU or a part of it."""
        if self.lost:
            yield Health(device=device, healthy=False, message="a GPU is lost", taint_key=LOST)
            return
        xid = self.xids.get(uuid)
        if xid is None:
            known = uuid not in self.silent
            message = "" if known else "the GPU does not report errors"
            yield Health(device=device, healthy=True if known else None, message=message)
            return
        yield Health(
            device=device,
            healthy=False,
            message=f"XID {xid}",
            taint_key=XID,
            taint_value=str(xid),
            effect="None" if xid in OF_PROGRAMS else NO_SCHEDULE,
        )


class Monitor:
    """Follows the errors of the GPUs of a machine."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._uuids: set[str] = set()
        self._errors = Errors()

    def follow(self, uuids: set[str]) -> None:
        """The GPUs that there are now."""
        self._uuids = uuids

    async def run(self) -> AsyncIterator[Errors]:
        """All that is known, now and whenever something is added. Raises the library's error."""
        followed: set[str] | None = None
        events: Any = None
        try:
            while True:
                if self._uuids != followed:
                    if events is not None:
                        self._nvml.forget(events)
                    followed = set(self._uuids)
                    events, silent = self._nvml.watch(sorted(followed))
                    self._errors.silent = frozenset(silent)
                    yield self._errors
                if self._errors.lost:  # then NVML says so at once, over and over
                    await asyncio.sleep(_WAIT_S)
                elif await asyncio.to_thread(self._next, events):
                    yield self._errors
        finally:
            if events is not None:
                self._nvml.forget(events)

    def _next(self, events: Any) -> bool:
        """Whether there was an error within a while."""
        try:
            found = self._nvml.wait(events, _WAIT_S)
        except GpuLostError:
            self._errors.lost = True
            return True
        if found is None:
            return False
        self._errors.add(*found)
        return True
