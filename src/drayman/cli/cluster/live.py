"""The status that `drayman up` shows on a terminal while it runs: where it is, what it holds, how busy it is."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from drayman.api import codec
from drayman.api.workloads import Lease
from drayman.apiserver.instance.folder import default_folder
from drayman.cli.cluster.tallies import (
    CLAIMS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    SLICES,
    Tally,
    claim_allocation,
    node_readiness,
    pod_phase,
    slice_devices,
)
from drayman.cli.errors import reason
from drayman.cli.output import can_redraw, console, say
from drayman.placement.schedulers import LEASE_NAMESPACE
from drayman.questions.schedulers import schedulers_in_words

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from drayman.apiserver.instance import Instance
    from drayman.apiserver.protocol.access import Attributes
    from drayman.apiserver.protocol.exchange import Request

_log: Final = logging.getLogger(__name__)

REFRESH_S: Final = 1.0


def is_wanted(no_color: bool) -> bool:
    """Whether the output is a terminal that can redraw, and plain lines were not requested."""
    if no_color or "NO_COLOR" in os.environ:
        return False
    return sys.stdout is not None and sys.stdout.isatty() and can_redraw(console())


@dataclass(slots=True)
class RequestCount:
    """Counts completed requests."""

    number: int = 0

    def finished(self, request: Request, attributes: Attributes, code: int, seconds: float) -> None:
        self.number += 1


class Rate:
    """How fast a number grows between two readings."""

    def __init__(self, number: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._number, self._time = number, clock()

    def per_second(self, number: int) -> float:
        before, then = self._number, self._time
        self._number, self._time = number, self._clock()
        passed = self._time - then
        return (number - before) / passed if passed > 0 else 0.0


class LiveStatus:
    """Follows an instance and summarises it in a few lines."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._store = instance.store
        self._started = time.monotonic()
        self._requests = RequestCount()
        instance.server.observers.append(self._requests)
        self._request_rate = Rate(0)
        self._change_rate = Rate(self._store.revision)
        self._nodes = Tally(self._store, NODES, node_readiness)
        self._pods = Tally(self._store, PODS, pod_phase)
        self._claims = Tally(self._store, CLAIMS, claim_allocation)
        self._slices = Tally(self._store, SLICES, slice_devices)

    def close(self) -> None:
        for tally in (self._nodes, self._pods, self._claims, self._slices):
            tally.close()
        self._instance.server.observers.remove(self._requests)

    def lines(self) -> list[tuple[str, str]]:
        """The lines, each with a label and a value."""
        instance, options = self._instance, self._instance.options
        requests = self._request_rate.per_second(self._requests.number)
        changes = self._change_rate.per_second(self._store.revision)
        return [
            ("Kubernetes API", f"{instance.url}   up {uptime(time.monotonic() - self._started)}"),
            ("state", str(options.folder.path) if options.durable else "in memory only"),
            *([("found", f"{instance.found} from an earlier run")] if instance.found else []),
            ("kubeconfig", str(instance.kubeconfig)),
            ("try", f"export KUBECONFIG={self._kubeconfig_in_shell()}"),
            ("", "kubectl get pods --all-namespaces"),
            ("", ""),
            ("nodes", counted(self._nodes)),
            ("devices", devices(self._slices)),
            ("claims", counted(self._claims)),
            ("pods", counted(self._pods)),
            ("namespaces", f"{self._store.count(NAMESPACES):,}"),
            *([("scheduler", scheduler)] if (scheduler := self._scheduler()) else []),
            ("load", f"{requests:,.0f} requests/s, {changes:,.0f} changes/s"),
        ]

    def _scheduler(self) -> str:
        """The process that schedules pods; empty while the embedded scheduler starts."""
        parts = self._instance.options.control_plane
        if parts is not None and parts.scheduler is not None:
            return self._instance.started.scheduler
        stored = self._store.list(LEASES, LEASE_NAMESPACE)
        leases = [codec.decode(Lease, each.data) for each in stored]
        return schedulers_in_words(leases, time.time())

    def _kubeconfig_in_shell(self) -> str:
        """The path in as few characters as possible: one that continues on the next line cannot be copied."""
        options = self._instance.options
        is_usual = options.durable and options.folder.path == default_folder()
        return "$(drayman kubeconfig --path)" if is_usual else str(self._instance.kubeconfig)

    def render(self) -> RenderableType:
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in self.lines():
            style = "bold" if name == "Kubernetes API" else ""
            grid.add_row(name, Text(value, style=style, overflow="fold"))
        grid.add_row("", Text("Ctrl-C ends it", style="dim"))
        return grid


async def show(instance: Instance, stop: asyncio.Event, until: ExitStack) -> None:
    """Show the status of an instance until it is to stop; the last frame stays.

    A status that cannot be shown is no reason to stop: that is reported once. Terminals can block, after Ctrl-S for instance, and then
    writers wait. So threads write, one at a time, and the terminal is restored when `until` ends, which should be after the server has
    ended.
    """
    screen = until.enter_context(ExitStack())
    try:
        await _draw(instance, stop, screen)
    except Exception as error:
        why = reason(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        sentence = f"the live status has ended ({why}); {instance.url} is still served"
        saying = asyncio.get_running_loop().run_in_executor(None, _say_last, screen, sentence)
        await stop.wait()
        saying.cancel()


def _say_last(screen: ExitStack, sentence: str) -> None:
    """Print below the last frame, which would be drawn over the sentence if the terminal were not restored first."""
    screen.close()
    say(sentence)


async def _draw(instance: Instance, stop: asyncio.Event, screen: ExitStack) -> None:
    """Draw once a second, on a terminal that is restored when `screen` ends."""
    from drayman.cli.frames import Redrawn

    loop = asyncio.get_running_loop()
    live = Redrawn(console())
    screen.callback(_give_back, live)
    live.start()
    drawing: asyncio.Future[None] | None = None
    with closing(LiveStatus(instance)) as status:
        while not stop.is_set():
            if drawing is None or drawing.done():
                if drawing is not None:
                    drawing.result()
                draw = partial(live.update, status.render(), refresh=True)
                drawing = loop.run_in_executor(None, draw)
            try:
                async with asyncio.timeout(REFRESH_S):
                    await stop.wait()
            except TimeoutError:
                continue


def _give_back(live: Live) -> None:
    """Restore the terminal, if it still exists."""
    try:
        live.stop()
    except OSError:
        _log.debug("the terminal is gone", exc_info=True)


def uptime(seconds: float) -> str:
    """A duration as clocks show it, with days if there are any."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    clock = f"{hour}:{minute:02}:{second:02}"
    return f"{days} d {clock}" if days else clock


def counted(tally: Tally) -> str:
    """As in `12: 3 Pending, 9 Running`."""
    parts = ", ".join(f"{number:,} {name}" for name, number in tally.refresh().items())
    return f"{tally.total:,}{': ' if parts else ''}{parts}"


def devices(tally: Tally) -> str:
    """As in `64 in 8 slices`."""
    number = tally.refresh().get("devices", 0)
    return f"{number:,} in {tally.total:,} {'slice' if tally.total == 1 else 'slices'}"
