"""When a node is usable: a new or returning node is tainted until a controller has seen that it is ready."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from drayman.api.core import Node
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.resources import NODES
from drayman.controllers.nodes.health import is_accepted
from drayman.node.simulated import is_failed


async def wait_accepted(
    informers: Informers, names: Iterable[str], report: Callable[[int], None]
) -> None:
    """Returns when pods can be placed on these nodes. `report` is called with the number of such nodes.

    Node handlers that were added earlier have been called by then. Nodes that are removed or fail meanwhile are not waited for.
    """
    waiting = set(names)
    total = len(waiting)
    news = asyncio.Event()

    def look(notice: Notice[Node]) -> None:
        node = notice.object
        if node.metadata.name in waiting and (
            notice.type == "DELETED" or is_failed(node) or is_accepted(node)
        ):
            waiting.discard(node.metadata.name)
            news.set()

    informer = informers.informer(NODES)
    informer.add_handler(look)
    try:
        while waiting:
            await news.wait()
            news.clear()
            report(total - len(waiting))
    finally:
        informer.remove_handler(look)
