"""Decisions in the log, one line each: which pod got which node and devices, how near these are to each other, and why pods wait.

A busy scheduler decides thousands of times a second, and nobody reads so many lines. Beyond a number in each second they are counted, and
the count is a line of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Final

from drayman.api.core import Pod
from drayman.api.pods import entry_claims
from drayman.api.resource import ResourceClaim
from drayman.inventory import DeviceId
from drayman.placement.alignment import note_on
from drayman.placement.decision.placements import Placement
from drayman.placement.state import ClusterState
from drayman.topology.distance import Link, link
from drayman.topology.locality import locality

_log: Final = logging.getLogger(__name__)
MOST_PER_SECOND: Final = 50
MOST_DEVICES: Final = 16
"""Devices of a claim that are named, and between which the distance is looked up."""
_SECOND: Final = 1.0
_LONGEST: Final = 1000
_MOST_CLAIMS: Final = 16


class Rate:
    """Lets some lines of each second through, and counts the others."""

    def __init__(self, clock: Callable[[], float], most: int = MOST_PER_SECOND) -> None:
        self._clock = clock
        self._most = most
        self._began = clock()
        self._count = 0

    def admits(self) -> bool:
        """Whether one more line may be written now."""
        now = self._clock()
        if now - self._began >= _SECOND:
            self._began, self._count = now, 0
        self._count += 1
        return self._count <= self._most


class DecisionLog:
    """The log of one scheduler."""

    def __init__(self, state: ClusterState, clock: Callable[[], float]) -> None:
        self._state = state
        self._rate = Rate(clock)
        self._left_out = 0

    def placed(self, placement: Placement) -> None:
        """A pod has its node."""
        if self._is_written():
            claims = (*placement.held, *placement.claims)
            found = {claim.metadata.uid: claim for claim in claims}.values()
            parts = [self._claim(claim, placement.node) for claim in found]
            _log.info("pod %s on %s%s", _name(placement.pod), placement.node, "".join(parts))

    def waits(self, pod: Pod, reason: str, message: str) -> None:
        """A pod waits, for a reason that is new."""
        if self._is_written():
            said, claims = message[:_LONGEST], _its_claims(pod)
            said = said.removesuffix(".") if claims else said
            _log.info("pod %s waits, %s: %s%s", _name(pod), reason, said, claims)

    def _is_written(self) -> bool:
        if not _log.isEnabledFor(logging.INFO):
            return False
        if self._rate.admits():
            return True
        if not self._left_out:
            asyncio.get_running_loop().call_later(_SECOND, self._tell_left_out)
        self._left_out += 1
        return False

    def _tell_left_out(self) -> None:
        count, self._left_out = self._left_out, 0
        _log.info("%d more decisions, which are not listed", count)

    def _claim(self, claim: ResourceClaim, node: str) -> str:
        results = claim.status.results
        by_driver: dict[str, list[str]] = {}
        for result in results[:MOST_DEVICES]:
            by_driver.setdefault(result.driver, []).append(result.device)
        devices = " and ".join(f"{', '.join(names)} of {d}" for d, names in by_driver.items())
        more = len(results) - MOST_DEVICES
        rest = f" and {more} more" if more > 0 else ""
        why = "; ".join(filter(None, (self._nearness(claim, node), *_alignments(claim))))
        return f"; DRA claim {claim.metadata.name}: {devices}{rest}{f' ({why})' if why else ''}"

    def _nearness(self, claim: ResourceClaim, node: str) -> str:
        """How far the two devices are apart that are farthest from each other."""
        known = self._state.nodes.get(node)
        if known is None:
            return ""
        hardware = self._state.view(known).hardware
        places = []
        for result in claim.status.results[:MOST_DEVICES]:
            position = hardware.position.get(DeviceId.of(result))
            if position is not None:
                places.append(locality(result.driver, hardware.records[position].device))
        links = [link(one, other) for one, other in combinations(places, 2)]
        farthest: Link | None = max(links, default=None)
        return "" if farthest is None else f"{farthest.code}: {farthest.meaning}"


def _alignments(claim: ResourceClaim) -> Iterator[str]:
    """What the claim says about the alignment that was asked for."""
    for note in note_on(claim):
        yield f"aligned at {note.level} of {note.levels}, as the {note.wanted_by} wants"


def _its_claims(pod: Pod) -> str:
    """The claims of a pod that waits: whoever looks for decisions about devices finds those that are not made yet, too."""
    names = [
        f"one of template {entry.resource_claim_template_name}" if name is None else name
        for entry, name in entry_claims(pod)
        if name != ""
    ]
    more = len(names) - _MOST_CLAIMS
    rest = f" and {more} more" if more > 0 else ""
    return f"; DRA claims: {', '.join(names[:_MOST_CLAIMS])}{rest}" if names else ""


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
