"""Cycles of the engine one after the other, with room for the pods of all that get quota, until nothing new comes of them.

Quota comes first: whoever gets quota and finds no room has others driven out, where its queue may, or is refused and left out, so that
others are tried. This is the only place that knows how the two go together. The control loop runs it and writes what comes of it; explain
runs it on what it supposes, and tells the engine the same as if it had been written.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from drayman.quota.decisions import Decision, Refused, Reserved
from drayman.quota.fitting.fitter import Unfit
from drayman.quota.state import QuotaState


class Unseated(Struct, frozen=True):
    """Quota that a workload was to get, and why it finds no room with it."""

    reserved: Reserved
    message: str


class Made(Struct, frozen=True):
    """A decision, and what it is about."""

    decision: Decision
    version: str = ""
    """That of the Workload as the engine was told of it; empty if it was not known."""
    room: str | None = None
    """What to write down about the room of a workload that gets quota."""
    unseated: Unseated | None = None
    """Set if this came of somebody's having quota and no room: who is refused, and whom that one drives out."""

    @property
    def key(self) -> str:
        return self.decision.key


class Cycles:
    """Cycles until the engine comes to rest. What was refused once is not decided anew until something else happens."""

    def __init__(self, state: QuotaState) -> None:
        """Room is asked for where the engine does (`QuotaState.ask_for_room`)."""
        self._state = state
        self._refused: set[Refused] = set()

    def run(self, now: float) -> Iterator[Made]:
        """What the next cycle decides that is new, one by one; nothing once the engine has come to rest.

        Looking for room takes its time, so whoever runs this may let others have their turn in between. It has to be run to its end, and
        all of it has to be carried out or taken back before the next.
        """
        decisions = self._state.cycle(now)
        versions = {each.key: self._version(each.key) for each in decisions}
        fresh = [
            each for each in decisions if not (isinstance(each, Refused) and each in self._refused)
        ]
        self._refused.update(each for each in decisions if isinstance(each, Refused))
        took_room = False
        for decision in fresh:
            found = self._room_for(decision)
            if isinstance(decision, Reserved) and isinstance(found, Unfit):
                yield from self._without_room(decision, found, now, took_room=took_room)
            else:
                room = found if isinstance(found, str) else None
                took_room = took_room or room is not None
                yield Made(decision, versions[decision.key], room)
        if any(not isinstance(each, Refused) for each in fresh):
            # Those that were refused may be tried again, each before others that were not tried at all.
            self._refused.clear()

    def _room_for(self, decision: Decision) -> str | Unfit | None:
        """Room for a workload that gets quota, which is kept from now on; None where nobody looks for any."""
        room = self._state.room
        entry = self._state.entries.get(decision.key)
        if room is None or entry is None or not isinstance(decision, Reserved):
            return None
        return room.admit(entry, decision.admission)

    def _without_room(
        self, decision: Reserved, found: Unfit, now: float, *, took_room: bool
    ) -> Iterator[Made]:
        """What becomes of a workload that was given quota and has no room; `took_room`: others were given some in this cycle."""
        key = decision.key
        if took_room and self._state.has_topologies:
            # Others of this cycle were given the same devices. There may be places elsewhere.
            self._state.forget(key, now)
            return
        unseated = Unseated(decision, found.message)
        for each in self._state.without_room(key, found.message, now):
            yield Made(each, self._version(each.key), unseated=unseated)

    def _version(self, key: str) -> str:
        """The version of a Workload that the engine was last told of."""
        entry = self._state.entries.get(key)
        source = None if entry is None else entry.source
        return "" if source is None else source.metadata.resource_version
