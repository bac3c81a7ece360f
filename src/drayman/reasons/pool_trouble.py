"""Pools that cannot be used, where what they publish, or have still to publish, may be what a pod waits for."""

from __future__ import annotations

from collections.abc import Sequence

from drayman.allocator import Question
from drayman.allocator.problem.focus import selectors_of
from drayman.inventory.device import DeviceRecord
from drayman.inventory.pool import ResolvedPool
from drayman.inventory.view import NodeView


def troubled_pool(view: NodeView, question: Question) -> ResolvedPool | None:
    """A pool of the node that is incomplete or invalid, and may have devices for a request.

    It has some if one of its devices passes the selectors, and it may have some if no device is visible.
    """
    for problem in view.problems:
        if problem.foreign:
            continue
        if not problem.published:
            return problem
        for selectors in selectors_of(view, question):
            if selectors is not None and _any_passes(view, selectors, problem.published):
                return problem
    return None


def _any_passes(view: NodeView, selectors: Sequence[str], devices: Sequence[DeviceRecord]) -> bool:
    return any(all(view.hardware.accepts(s, device) for s in selectors) for device in devices)
