"""Events that wait to be written: bounded, the less important dropped first."""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import TypeVar

from drayman.api.struct import ApiStruct
from drayman.cluster.resources import JsonObject, Resource

T = TypeVar("T")


class Reference(ApiStruct):
    """The object that an event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    @classmethod
    def to(cls, resource: Resource[T], value: T) -> Reference:
        found = resource.codec.identity(value)
        return cls(
            api_version=resource.api_version,
            kind=resource.kind,
            namespace=found.namespace,
            name=found.name,
            uid=found.uid,
        )


class EventBuffer:
    """A queue of events, oldest first. When full, it drops the oldest Normal one, or the oldest warning where there is none."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._numbers = count(1)
        self._normal: deque[tuple[int, JsonObject]] = deque()
        self._warning: deque[tuple[int, JsonObject]] = deque()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._normal) + len(self._warning)

    def put(self, event: JsonObject) -> None:
        if len(self) >= self._bound:
            (self._normal or self._warning).popleft()
            self.dropped += 1
        self._queue(event).append((next(self._numbers), event))

    def put_back(self, events: list[JsonObject]) -> None:
        """Puts events that were taken back at the front. Newer ones have priority where room is scarce."""
        for event in reversed(events):
            if len(self) < self._bound:
                self._queue(event).appendleft((0, event))
            else:
                self.dropped += 1

    def take(self, most: int) -> list[JsonObject]:
        taken: list[JsonObject] = []
        while len(taken) < most and len(self):
            taken.append(self._oldest().popleft()[1])
        return taken

    def _queue(self, event: JsonObject) -> deque[tuple[int, JsonObject]]:
        return self._normal if event["type"] == "Normal" else self._warning

    def _oldest(self) -> deque[tuple[int, JsonObject]]:
        if not self._normal or not self._warning:
            return self._normal or self._warning
        return self._normal if self._normal[0][0] <= self._warning[0][0] else self._warning
