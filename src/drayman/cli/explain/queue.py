"""Where something waits for quota, as text: its place, what it asks for against what there is, and who holds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from drayman.cli.explain.layout import INDENT, age, plain, prose, section
from drayman.explain.queue_answer import Charge, HoldingWorkload, Need, PlaceInQueue
from drayman.explain.queues.wording import ahead_of
from drayman.reasons.wording import counted

_MOST_HOLDERS: Final = 6


def queue_sections(place: PlaceInQueue, now: float) -> Iterator[RenderableType]:
    """The queue, what is asked of it, and who holds that."""
    yield section("the queue", "", *_place(place))
    if place.needs:
        yield section("what it asks for", "in each flavor that could give it", _needs(place.needs))
    if place.charges:
        verb = "what it would get" if place.position is not None else "what it has"
        lines = [prose(plain(each), indent=INDENT) for each in charges(place.charges)]
        yield section(verb, "of quota", *lines)
    if place.holders:
        yield section("who holds it", "", _holders(place, now))
        left = place.holders_left_out + max(0, len(place.holders) - _MOST_HOLDERS)
        if left:
            yield prose((f"and {counted(left, 'more workload')}", "dim"), indent=INDENT)


def charges(found: Iterable[Charge]) -> list[str]:
    """By flavor, as in `16 cpu, 8 nvidia.com/gpu (h100)`."""
    flavors: dict[str, list[str]] = {}
    for each in found:
        flavors.setdefault(each.flavor, []).append(f"{each.amount} {each.resource}")
    return [f"{', '.join(amounts)} ({flavor})" for flavor, amounts in flavors.items()]


def _place(place: PlaceInQueue) -> Iterator[RenderableType]:
    name = place.local_queue.partition("/")[2]
    leads = f" leads to ClusterQueue {place.cluster_queue}" if place.cluster_queue else ""
    cohorts = f", which may borrow in {' and then '.join(place.cohorts)}" if place.cohorts else ""
    yield prose(plain(f"LocalQueue {name or '(none)'}{leads}{cohorts}"), indent=INDENT)
    if place.position is not None:
        where = ahead_of(place.position, place.waiting, place.cluster_queue, place.ahead)
        priority = f"priority {place.priority:,}: "
        yield prose((priority, "dim"), plain(where), indent=INDENT)
    if place.reason:
        said = f"{place.reason}: {place.message}"
        who = "condition: " if place.is_written else "admission says: "
        yield prose((who, "dim"), plain(said), indent=INDENT)


def _needs(needs: tuple[Need, ...]) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("flavor", overflow="fold")
    table.add_column("resource", overflow="fold")
    for title in ("wanted", "free", "at most"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for need in needs:
        short = need.wanted.amount > need.free.amount
        note = need.mismatch or (f"{need.lacking} more needed" if short else "")
        style = "bold red" if short or need.mismatch else "green"
        table.add_row(
            plain(need.flavor),
            plain(need.resource),
            str(need.wanted),
            str(need.free),
            str(need.most),
            plain(note),
            style=style if note else "",
        )
    return Padding(table, (0, 0, 0, INDENT))


def _holders(place: PlaceInQueue, now: float) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    # Names are copied from here, so that columns that say nothing leave their width to them.
    with_queue = any(each.cluster_queue != place.cluster_queue for each in place.holders)
    with_priority = any(each.priority != place.priority for each in place.holders)
    table.add_column("workload", overflow="fold")
    if with_queue:
        table.add_column("queue", overflow="fold")
    if with_priority:
        table.add_column("priority", justify="right", no_wrap=True)
    table.add_column("since", no_wrap=True)
    table.add_column("holds", overflow="fold")
    for each in place.holders[:_MOST_HOLDERS]:
        table.add_row(*_holder(each, now, with_queue=with_queue, with_priority=with_priority))
    return Padding(table, (0, 0, 0, INDENT))


def _holder(
    holder: HoldingWorkload, now: float, *, with_queue: bool, with_priority: bool
) -> Iterator[str]:
    yield plain(holder.workload)
    if with_queue:
        yield plain(holder.cluster_queue)
    if with_priority:
        yield f"{holder.priority:,}"
    yield age(holder.since or "", now)
    yield plain(", ".join(charges(holder.charges)))
