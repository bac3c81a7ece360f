"""What a node and a driver tell each other, whichever version of the protocol they do it in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

PLUGIN_TYPE: Final = "DRAPlugin"
HEALTH_TIMEOUT_S: Final = 30
"""Health that was reported this long ago is unknown, unless the report says otherwise."""
LONGEST_MESSAGE: Final = 1024
"""Of a report about health."""


@dataclass(frozen=True, slots=True)
class ClaimRef:
    """A claim, as calls name it: they carry neither its allocation nor its configuration."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ReadyDevice:
    """A device that containers can use now."""

    requests: tuple[str, ...]
    """Names of requests, without those of subrequests."""
    pool: str
    device: str
    cdi_ids: tuple[str, ...]
    share_id: str | None = None


@dataclass(frozen=True, slots=True)
class Ready:
    """A claim is prepared."""

    devices: tuple[ReadyDevice, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """A claim is not prepared, or not unprepared."""

    message: str


Answers = Mapping[str, Ready | Failed]
"""By uid, one for each claim that was asked for."""
Removals = Mapping[str, Failed | None]
"""By uid; None where the claim is not prepared any more, or never was."""


class HealthState(IntEnum):
    """The numbers are those of the protocol."""

    UNKNOWN = 0
    HEALTHY = 1
    UNHEALTHY = 2


@dataclass(frozen=True, slots=True)
class ReportedHealth:
    """The health of one device, as a node is told."""

    pool: str
    device: str
    state: HealthState
    updated: int
    """Seconds since the epoch."""
    timeout_s: int = HEALTH_TIMEOUT_S
    message: str = ""


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """How a plugin introduces itself."""

    type: str
    name: str
    endpoint: str
    versions: tuple[str, ...]
    """Services, the preferred one first."""


def cut_message(message: str) -> str:
    """A message about health that is no longer than may be, with its end marked where something was left out."""
    return message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 3]}..."


def writable(message: str) -> str:
    """A message as UTF-8 can have it: names of files, which drivers like to quote, have halves of surrogate pairs for other bytes."""
    return message.encode(errors="backslashreplace").decode()
