"""What moves would make room, as data."""

from __future__ import annotations

from collections.abc import Mapping

from drayman.api.struct import ApiStruct
from drayman.reasons.reason import Headline


class Place(ApiStruct):
    """Where a pod is, or would be."""

    node: str
    devices: tuple[str, ...] = ()
    """As driver/pool/device."""


class MovedPod(ApiStruct):
    """A pod that leaves its place, and where the one that its controller makes instead has a proven place."""

    name: str
    namespace: str
    uid: str
    owner: str
    """As kind/name."""
    before: Place
    after: Place
    gang: str = ""
    priority: int = 0
    lost_seconds: float = 0.0
    """How long it has run: it begins anew."""


class MoveStep(ApiStruct):
    """Pods that leave at the same time: nearly always one. Their new places are free when it is their turn."""

    number: int
    """Counted from 1, over all steps of the proposal."""
    pods: tuple[MovedPod, ...]


class SeatedPod(ApiStruct):
    """A pod that waits, and where it would go after the moves."""

    name: str
    namespace: str
    uid: str
    after: Place


class Room(ApiStruct):
    """A pod or a gang that waits, and what would make room for it."""

    name: str
    """As in `pod ml/train`, or `pod group ml/ring`."""
    fits: bool
    """Whether there is room for it after the steps, or without any."""
    steps: tuple[MoveStep, ...] = ()
    pods: tuple[SeatedPod, ...] = ()
    waits: Headline | None = None
    """Why it waits now; None if it does not have to."""
    obstacle: str = ""
    """Why no moves make room."""
    is_final: bool = True
    """False if the search ended before all ways were tried."""


class MoveCost(ApiStruct):
    """What all the moves cost."""

    pods: int = 0
    gangs: int = 0
    """How many gangs are disturbed."""
    lost_device_seconds: float = 0.0
    """How long the moved pods have run, and the other members of their gangs, times their devices."""


class Application(ApiStruct):
    """What became of a proposal that was carried out."""

    moved: int
    """How many pods were moved."""
    started: tuple[str, ...] = ()
    """What has the room that was made for it."""
    stopped: str = ""
    """Why it ended early; empty if all of it was done."""


class DefragReport(ApiStruct):
    """The moves that make room for what waits."""

    rooms: tuple[Room, ...]
    cost: MoveCost = MoveCost()
    staying: Mapping[str, int] = {}
    """How many pods with devices cannot be moved, by the reason."""
    applied: Application | None = None
    """None if nothing was changed."""
    nodes: int = 0
    unseen: tuple[str, ...] = ()
    evidence: Mapping[str, str] = {}

    @property
    def steps(self) -> tuple[MoveStep, ...]:
        return tuple(step for room in self.rooms for step in room.steps)

    @property
    def fits(self) -> bool:
        """Whether everything that was asked about has room after the moves."""
        return all(room.fits for room in self.rooms)
