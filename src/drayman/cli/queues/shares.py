"""Queues in the sense of the KAI Scheduler, as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.padding import Padding

from drayman.cli.explain.drawing import unseen
from drayman.cli.explain.layout import INDENT, Trimmed, plain, prose, section
from drayman.cli.table import Cell, Column, Table
from drayman.questions.queues.shares import ShareAnswer, ShareRow, WorkRow
from drayman.reasons.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

_INDENT: Final = "  "
_COLUMNS: Final = (
    Column("QUEUE", is_name=True, stays=True),
    Column("QUOTA", is_number=True),
    Column("LIMIT", is_number=True, spare=2),
    Column("SHARE", is_number=True),
    Column("USED", is_number=True),
    Column("OVER QUOTA", is_number=True, spare=3),
    Column("WANTED", is_number=True, spare=4),
    Column("PRIORITY", is_number=True, spare=5),
    Column("PENDING", is_number=True, spare=1),
)
_WORK: Final = (
    Column("WORK", is_name=True, stays=True),
    Column("QUEUE", is_name=True),
    Column("GPUS", is_number=True),
    Column("PREEMPTIBLE", spare=1),
)


def draw_shares(rows: Sequence[ShareRow], out: Console) -> None:
    """The table of all queues. Amounts are GPUs."""
    table = Table(_COLUMNS, [_cells(each) for each in rows if not each.why_inactive])
    if out.is_terminal:
        out.print(table.text(out.width))
    else:
        out.file.write(f"{table.plain()}\n")
    inactive = [each for each in rows if each.why_inactive]
    if inactive:
        lines = [prose(f"{plain(each.why_inactive)}", indent=INDENT) for each in inactive]
        out.print(Trimmed(section("inactive", "nothing starts in these", *lines)), end="")


def draw_share(answer: ShareAnswer, out: Console, *, most: int) -> None:
    """One queue."""
    out.print(Trimmed(Group(*_share(answer, out, most))))


def _share(answer: ShareAnswer, out: Console, most: int) -> Iterator[RenderableType]:
    row = answer.queue
    if row.why_inactive:
        yield prose(
            (f"Queue {plain(row.name)}", "bold"),
            " is ",
            ("inactive", "bold red"),
            f": {plain(row.why_inactive.removeprefix(f'queue {row.name}, '))}.",
        )
    else:
        yield prose(
            (f"Queue {plain(row.name)}", "bold"),
            f" uses {counted(row.used, 'GPU')}, and its work wants {row.wanted:,}.",
        )
        parts = [
            f"quota {_amount(row.quota)}",
            f"limit {_amount(row.limit)}",
            f"fair share {row.share:g}",
        ]
        parts += [f"{row.over_quota:g} over quota"] if row.over_quota else []
        parts += [f"{row.firm:,} not preemptible"] if row.firm else []
        parts += [f"below {plain(row.parent)}"] if row.parent else []
        yield prose(("; ".join(parts), "dim"))
    if answer.holders:
        table = Table(_WORK, [_work(each) for each in answer.holders[:most]])
        text = Padding(table.text(out.width - INDENT), (0, 0, 0, INDENT))
        yield section("who holds it", "", text, *_rest(len(answer.holders) - most))
    if answer.pending:
        lines = [line for each in answer.pending[:most] for line in _pending(each)]
        yield section("who waits", "", *lines, *_rest(len(answer.pending) - most))
    if answer.unseen:
        yield ""
        yield unseen(answer.unseen)


def _pending(row: WorkRow) -> Iterator[RenderableType]:
    wants = f"  {counted(row.gpus, 'GPU')}, queue {plain(row.queue)}"
    yield prose((plain(row.title), "bold"), (wants, "dim"), indent=INDENT)
    if row.why:
        yield prose(plain(row.why), indent=2 * INDENT)


def _rest(number: int) -> Iterator[RenderableType]:
    if number > 0:
        yield prose((f"and {number:,} more; --all lists them", "dim"), indent=INDENT)


def _work(row: WorkRow) -> tuple[Cell, ...]:
    return (row.title, row.queue, f"{row.gpus:,}", "yes" if row.preemptible else "no")


def _cells(row: ShareRow) -> tuple[Cell, ...]:
    return (
        f"{_INDENT * row.depth}{row.name}",
        _amount(row.quota),
        _amount(row.limit),
        f"{row.share:g}",
        f"{row.used:,}",
        f"{row.over_quota:g}" if row.over_quota else "",
        f"{row.wanted:,}",
        f"{row.priority}",
        f"{row.pending:,}",
    )


def _amount(amount: float | None) -> str:
    return "none" if amount is None else f"{amount:g}"
