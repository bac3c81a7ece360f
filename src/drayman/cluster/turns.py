"""Which component makes the claims of a pod, where scheduler and controllers share a process.

A pod that names templates needs claims before it can run. The claim controller makes them, as in Kubernetes; but a pod that can be placed
at once gets claims, devices and node in a single transaction if the scheduler makes them itself. So the scheduler has the first turn: while
it holds the turn for a pod, the controller leaves the pod alone; when the scheduler gives the turn up, the controller is notified.
"""

from __future__ import annotations

from collections.abc import Callable

from drayman.api.core import Pod

Listener = Callable[[Pod], None]


class Turns:
    """The pods whose claims the scheduler may still make. Each pod gets one turn."""

    def __init__(self) -> None:
        self._held: dict[str, Pod] = {}  # by uid
        self._listeners: list[Listener] = []

    def take(self, pod: Pod) -> None:
        """The scheduler is going to try the pod."""
        self._held[pod.metadata.uid] = pod

    def is_held(self, uid: str) -> bool:
        return uid in self._held

    def end(self, uid: str) -> None:
        """The pod has its claims, or is gone."""
        self._held.pop(uid, None)

    def give_up(self, pod: Pod) -> None:
        """The scheduler could not place the pod: the controller is to make its claims."""
        if self._held.pop(pod.metadata.uid, None) is not None:
            for listener in self._listeners:
                listener(pod)

    def give_up_all(self) -> None:
        """The scheduler stops."""
        for pod in tuple(self._held.values()):
            self.give_up(pod)

    def listen(self, listener: Listener) -> None:
        """Register a listener for pods that the scheduler gives up."""
        self._listeners.append(listener)
