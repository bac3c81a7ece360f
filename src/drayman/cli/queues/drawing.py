"""Queues as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from drayman.api.times import seconds_of
from drayman.cli.explain.drawing import headline, unseen
from drayman.cli.explain.layout import INDENT, Trimmed, age, plain, prose, section, span
from drayman.cli.explain.queue import charges
from drayman.cli.queues.bars import coloured, legend
from drayman.cli.queues.rows import queue_table, quota_table
from drayman.cli.queues.shares import draw_shares
from drayman.cli.table import Cell, Column, Table
from drayman.explain.queue_answer import HoldingWorkload
from drayman.questions.queues.answer import PendingRow, QueueAnswer, QueueRow, QueuesAnswer
from drayman.reasons.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

MOST_SHOWN: Final = 12
_NONE: Final = "-"


def draw_queues(answer: QueuesAnswer, out: Console, *, wide: bool) -> None:
    """The table of all queues: with bars on a terminal, whole lines elsewhere."""
    if not answer.queues and answer.shares:
        pass  # only queues of KAI
    elif not answer.queues:
        out.print(
            Trimmed(prose("There are no ClusterQueues, and no Queues of the KAI Scheduler.")),
            end="",
        )
    else:
        ascii_only = out.options.ascii_only
        table = queue_table(answer, with_bars=out.is_terminal, wide=wide, ascii_only=ascii_only)
        if out.is_terminal:
            out.print(coloured(table.text(out.width), ascii_only=ascii_only))
            drawn = [each for row in answer.queues for each in row.quotas]
            out.print(legend(drawn, ascii_only=ascii_only))
        else:
            out.file.write(f"{table.plain()}\n")
    if answer.shares:
        if answer.queues:
            out.print()
        draw_shares(answer.shares, out)
    out.print(Trimmed(Group(*_after_queues(answer))), end="")


def _after_queues(answer: QueuesAnswer) -> Iterator[RenderableType]:
    inactive = [each for each in answer.queues if not each.active]
    if inactive:
        lines = [
            prose((plain(each.name), "bold red"), f": {plain(each.why_inactive)}", indent=INDENT)
            for each in inactive
        ]
        yield section("inactive", "nothing starts in these", *lines)
    yield from _remarks(answer.problems, answer.unseen)


def _remarks(problems: tuple[str, ...], hidden: tuple[str, ...]) -> Iterator[RenderableType]:
    if problems:
        lines = [prose(plain(each), indent=INDENT) for each in problems]
        yield section("left out", "because it makes no sense", *lines)
    if hidden:
        yield ""
        yield unseen(hidden)


def draw_queue(answer: QueueAnswer, now: float, out: Console, *, all_of_them: bool) -> None:
    """One queue."""
    most = len(answer.pending) + len(answer.holders) if all_of_them else MOST_SHOWN
    out.print(Trimmed(Group(*_queue(answer, now, out, most))))


def _queue(answer: QueueAnswer, now: float, out: Console, most: int) -> Iterator[RenderableType]:
    row = answer.queue
    yield from _head(answer, row)
    if row.quotas:
        ascii_only = out.options.ascii_only
        table = quota_table(row, with_bars=out.is_terminal, ascii_only=ascii_only)
        drawn = [_indented(coloured(table.text(out.width - INDENT), ascii_only=ascii_only))]
        if out.is_terminal:
            drawn.append(_indented(legend(list(row.quotas), ascii_only=ascii_only)))
        yield section("quota", f"of ClusterQueue {plain(row.name)}", *drawn)
    if answer.holders:
        table = Table(_HOLDER_COLUMNS, [_holder(each, now) for each in answer.holders[:most]])
        lines: list[RenderableType] = [_indented(table.text(out.width - INDENT))]
        yield section("who holds it", "", *lines, *_rest(len(answer.holders) - most))
    if answer.pending:
        lines = [line for each in answer.pending[:most] for line in _pending(each, now)]
        yield section("who waits", "in this order", *lines, *_rest(len(answer.pending) - most))
    yield from _remarks(answer.problems, answer.unseen)


def _head(answer: QueueAnswer, row: QueueRow) -> Iterator[RenderableType]:
    title = f"ClusterQueue {plain(row.name)}"
    if answer.local_queue:
        namespace, _, name = answer.local_queue.partition("/")
        title = f"LocalQueue {plain(name)} of namespace {plain(namespace)}, in {title},"
    state = ("active", "bold green") if row.active else ("inactive", "bold red")
    why = f": {plain(row.why_inactive)}" if row.why_inactive else ""
    yield prose((title, "bold"), " is ", state, f"{why}.")
    waiting, holding = len(answer.pending), len(answer.holders)
    wait = f"{counted(waiting, 'workload')} {'waits' if waiting == 1 else 'wait'}"
    hold = f"{counted(holding, 'workload')} {'has' if holding == 1 else 'have'} quota"
    parts = [row.strategy, f"{hold}, {wait}"]
    if answer.cohorts:
        parts.insert(1, f"may borrow in {' and then '.join(map(plain, answer.cohorts))}")
    yield prose(("; ".join(parts), "dim"))


def _indented(content: Text) -> RenderableType:
    return Padding(content, (0, 0, 0, INDENT))


def _rest(number: int) -> Iterator[RenderableType]:
    if number > 0:
        yield prose((f"and {number:,} more; --all lists them", "dim"), indent=INDENT)


_HOLDER_COLUMNS: Final = (
    Column("WORKLOAD", is_name=True, stays=True),
    Column("OWNER", is_name=True, empty=_NONE),
    Column("PRIORITY", is_number=True, empty="0", spare=4),
    Column("STATE", empty="admitted"),
    Column("SINCE", spare=2),
    Column("ENDS", empty=_NONE, spare=1),
    Column("HOLDS", is_name=True),
)


def _held(holder: HoldingWorkload) -> Iterator[str]:
    yield from charges(holder.charges)
    if holder.admin_devices:
        yield f"{holder.admin_devices:,} with admin access, free"


def _holder(holder: HoldingWorkload, now: float) -> tuple[Cell, ...]:
    state = "admitted" if holder.admitted else "reserved"
    return (
        holder.workload,
        holder.owner or _NONE,
        f"{holder.priority:,}",
        "evicted" if holder.evicted else state,
        age(holder.since or "", now) or _NONE,
        f"in {span(seconds_of(holder.ends) - now)}" if holder.ends else _NONE,
        ", ".join(_held(holder)) or _NONE,
    )


def _pending(row: PendingRow, now: float) -> Iterator[RenderableType]:
    place = _NONE if row.position is None else f"{row.position:,}"
    facts = [plain(row.owner)] if row.owner else []
    facts += [f"priority {row.priority:,}"] if row.priority else []
    facts += [f"since {age(row.created, now)}"] if row.created else []
    said = f"  {', '.join(facts)}" if facts else ""
    yield prose((f"{place}. ", "dim"), (plain(row.workload), "bold"), (said, "dim"), indent=INDENT)
    yield Padding(headline(row.headline), (0, 0, 0, 2 * INDENT + 1))
    if row.headline.reason.kind is not None:
        text = plain(row.estimate.sentence)
        lead = "" if text.startswith("No start") else "estimated start: "
        yield prose((f"{lead}{text}", "dim"), indent=2 * INDENT + 1)
