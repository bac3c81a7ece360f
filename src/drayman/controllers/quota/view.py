"""The cluster as placement sees it, for prices of devices and for room: a state of this loop's own.

The scheduler's state is the scheduler's. This one is filled when the first Workload asks for a device or is about to be admitted, so that a
cluster without queues pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from drayman.cluster.informer import Informer, Notice
from drayman.cluster.informers import Informers
from drayman.cluster.resources import typed
from drayman.inventory.features import Features
from drayman.placement.followed import FOLLOWED, Followed
from drayman.placement.state import ClusterState

DELETED: Final = "DELETED"

Listener = Callable[[type, Notice[Any]], None]
"""Told of the type of an object and of its change, after the state was."""


class ClusterView:
    """A state that follows the cluster."""

    def __init__(self, informers: Informers) -> None:
        self._followed: list[tuple[Followed, Informer[Any]]] = [
            (kind, informers.informer(typed(kind.type))) for kind in FOLLOWED
        ]
        self._state: ClusterState | None = None
        self._listeners: list[Listener] = []
        self._woken: list[Callable[[], None]] = []
        for kind, informer in self._followed:
            informer.add_handler(self._handler(kind))

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def listen_to_improvements(self, listener: Callable[[], None]) -> None:
        """Be told when something may fit that did not before."""
        self._woken.append(listener)

    @property
    def is_used(self) -> bool:
        """Whether anybody has asked for the state yet."""
        return self._state is not None

    @property
    def state(self) -> ClusterState:
        if self._state is None:
            self._state = ClusterState(Features(), self._wake)
            for kind, informer in self._followed:
                for each in informer.cache:
                    kind.put(self._state, each)
        return self._state

    def objects(self, type_: type) -> list[Any]:
        """The objects of a kind as they are known now."""
        return [
            each
            for kind, informer in self._followed
            if kind.type is type_
            for each in informer.cache
        ]

    def _wake(self, _change: object) -> None:
        for listener in self._woken:
            listener()

    def _handler(self, kind: Followed) -> Callable[[Notice[Any]], None]:
        def handle(notice: Notice[Any]) -> None:
            if self._state is None:
                return
            if notice.type == DELETED:
                kind.remove(self._state, notice.object)
            elif kind.put(self._state, notice.object) is False:
                return
            for listener in self._listeners:
                listener(kind.type, notice)

        return handle
