"""Prices as text for people: for each workload what it costs, then how that comes about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table

from drayman.cli.explain.layout import INDENT, Trimmed, prose
from drayman.questions.quota_prices import (
    NoPrice,
    PriceAnswer,
    PricedItem,
    PricedPodSet,
    PricedWorkload,
)
from drayman.reasons.wording import counted


@dataclass(frozen=True, slots=True)
class PriceDrawing:
    """Prices, drawn for any width."""

    answer: PriceAnswer

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Trimmed(Group(*self._parts()))

    def _parts(self) -> Iterator[RenderableType]:
        for number, workload in enumerate(self.answer.workloads):
            if number:
                yield ""
            yield from _workload(workload)
        if self.answer.ignored:
            yield ""
            yield prose((f"not queued: {', '.join(self.answer.ignored)}", "dim"))


def _workload(workload: PricedWorkload) -> Iterator[RenderableType]:
    place = f" in namespace {workload.namespace}"
    flavor = f", flavor {workload.flavor}" if workload.flavor else ""
    if workload.no_price is not None:
        yield prose((workload.title, "bold"), f"{place}{flavor}: ", ("no price", "bold red"))
        yield from _reason(workload.no_price)
        return
    yield prose((workload.title, "bold"), f"{place}{flavor}")
    for pod_set in workload.pod_sets:
        yield from _pod_set(pod_set)


def _reason(reason: NoPrice) -> Iterator[RenderableType]:
    yield prose((reason.reason, "red"), f": {reason.message}", indent=INDENT)
    later = "It may have one later, without being changed." if reason.may_pass else ""
    if later:
        yield prose((later, "dim"), indent=INDENT)


def _pod_set(pod_set: PricedPodSet) -> Iterator[RenderableType]:
    yield prose(f"pod set {pod_set.name}, {counted(pod_set.pods, 'pod')}", indent=INDENT)
    if not pod_set.resources:
        yield prose(("costs nothing", "dim"), indent=2 * INDENT)
    else:
        yield Padding(_amounts(pod_set), (0, 0, 0, 2 * INDENT))
    for item in pod_set.items:
        yield prose(*_why(item), indent=2 * INDENT, mark="-")
    if pod_set.replaced:
        said = f"charged as devices, not as such: {', '.join(pod_set.replaced)}"
        yield prose((said, "dim"), indent=2 * INDENT, mark="-")


def _amounts(pod_set: PricedPodSet) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    is_shared = any(resource.once != "0" for resource in pod_set.resources)
    table.add_column("RESOURCE", overflow="fold")
    table.add_column("EACH POD", justify="right")
    if is_shared:
        table.add_column("SHARED", justify="right")
    table.add_column("TOTAL", justify="right", style="bold")
    for resource in pod_set.resources:
        shared = (resource.once,) if is_shared else ()
        table.add_row(resource.name, resource.each, *shared, resource.total)
    return table


def _why(item: PricedItem) -> Iterator[str | tuple[str, str]]:
    request = f", request {item.request}" if item.request else ""
    yield f"{item.source}{request}"
    if item.device_class:
        yield (f" (class {item.device_class})", "dim")
    amount = f"{item.amount} {item.resource}; " if item.resource else ""
    yield f": {amount}{item.why}"
    if item.is_shared:
        yield (", once for all pods", "dim")
