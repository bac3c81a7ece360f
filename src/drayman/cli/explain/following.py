"""`drayman explain --watch`: the answer again, whenever it has become another.

The cluster is read anew when anything that the answer was read from changes. On a busy cluster that is all the time, so the pause between
two readings grows with what a reading costs, and only an answer that differs is shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import click
import msgspec

from drayman.cli.explain.asking import explanation_of
from drayman.cli.explain.command import as_data
from drayman.cli.explain.drawing import Drawing
from drayman.cli.explain.naming import Subject
from drayman.cli.output import can_redraw, console, print_data, refuse_unread
from drayman.cli.reading import read_world, sources
from drayman.cli.worlds import unobtrusively
from drayman.cluster import Client, WatchOptions
from drayman.cluster.errors import (
    ExpiredError,
    ForbiddenError,
    MethodNotAllowedError,
    ProtocolError,
    UnreachableError,
)
from drayman.cluster.resources import Resource
from drayman.cluster.watching import Change
from drayman.explain.answer import Explanation
from drayman.placement.world import World

SHORTEST_PAUSE_S: Final = 0.5
"""Between two readings: changes come in groups, such as those of a pod and its claims."""
PAUSE_PER_READING: Final = 3.0
"""At most a quarter of the time is spent on reading."""
POLL_S: Final = 5.0
"""How often to look at what may be listed and not watched."""
HEARTBEAT_S: Final = 1.0
"""How often to look whether somebody still reads the answers."""

Show = Callable[[Explanation, float], None]


async def follow(
    client: Client, subject: Subject, namespace: str, output_format: str | None
) -> NoReturn:
    """Show the explanation, and each that differs from the one before. Raises UserError once the object is gone."""
    loop = asyncio.get_running_loop()
    shown: Explanation | None = None
    with _showing(output_format) as show:
        while True:
            began = loop.time()
            with unobtrusively(again=True):
                world = await read_world(
                    client, namespace=namespace, workloads=subject.needs_workloads
                )
                found = explanation_of(world, subject, namespace)
            if shown is None or not _same(found, shown):
                show(found, world.now)
                shown = found
            spent = loop.time() - began
            await _change(client, world, namespace)
            await asyncio.sleep(max(SHORTEST_PAUSE_S, PAUSE_PER_READING * spent))


def _same(found: Explanation, shown: Explanation) -> bool:
    """Whether the answers are alike. Versions change with every write, also of what does not matter."""
    return msgspec.structs.replace(found, evidence=shown.evidence) == shown


async def _change(client: Client, world: World, namespace: str) -> None:
    """Returns once something has changed that the world was read from."""
    waiting = [
        asyncio.create_task(_changed(client, resource, scope, version))
        for resource, scope, version in sources(world, namespace)
    ]
    try:
        done: set[asyncio.Task[None]] = set()
        while not done:
            refuse_unread()
            done, _ = await asyncio.wait(
                waiting, timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED
            )
        for task in done:
            task.result()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _changed(
    client: Client, resource: Resource[Any], namespace: str | None, version: str
) -> None:
    options = WatchOptions(resource_version=version)
    try:
        async with client.watch(resource, namespace, options=options) as events:
            async for event in events:
                if isinstance(event, Change):
                    return
    except (ForbiddenError, MethodNotAllowedError):
        await asyncio.sleep(POLL_S)
    except (ExpiredError, ProtocolError, UnreachableError):
        return  # what was missed is found by reading anew, which also says if nobody answers


@contextmanager
def _showing(output_format: str | None) -> Iterator[Show]:
    """Where explanations go: drawn over one another on a terminal, after one another elsewhere."""
    if output_format:
        yield lambda found, _: _print_document(found, output_format)
        return
    out = console()
    if not can_redraw(out):
        is_first = True

        def print_one(found: Explanation, now: float) -> None:
            nonlocal is_first
            if not is_first:
                out.print()
            is_first = False
            out.print(Drawing(found, now))

        yield print_one
        return
    from rich.live import Live

    with Live(console=out, auto_refresh=False) as live:
        yield lambda found, now: live.update(Drawing(found, now), refresh=True)


def _print_document(found: Explanation, output_format: str) -> None:
    if output_format == "yaml":
        click.echo("---")
    print_data(as_data(found), output_format)
