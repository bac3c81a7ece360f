"""Rows of `drayman queues`: a line for each flavor and resource of a queue, below the cohorts that it is in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from drayman.api.quantity import Quantity
from drayman.cli.queues.bars import bar
from drayman.cli.table import Cell, Column, Table
from drayman.questions.queues.answer import CohortRow, QueueRow, QueuesAnswer, QuotaRow

_INDENT: Final = "  "


def queue_table(answer: QueuesAnswer, *, with_bars: bool, wide: bool, ascii_only: bool) -> Table:
    """All queues and cohorts, in the order of their trees."""
    cohorts = {f"/{each.name}": each for each in answer.cohorts}
    queues = {each.name: each for each in answer.queues}
    drawing = _Drawing(with_bars, wide, ascii_only)
    lines: list[Sequence[Cell]] = []
    for name in answer.order:
        lines += drawing.cohort(cohorts[name]) if name in cohorts else drawing.queue(queues[name])
    last = _LAST_WIDE if wide else _LAST
    return _without_blank((_NAME, *drawing.columns, *last), lines)


def quota_table(row: QueueRow, *, with_bars: bool, ascii_only: bool) -> Table:
    """The lines of one queue, without its name."""
    drawing = _Drawing(with_bars, True, ascii_only)
    return _without_blank(drawing.columns, [drawing.quota(each) for each in row.quotas])


_NAME: Final = Column("QUEUE", is_name=True, stays=True)
_LAST: Final = (Column("PENDING", is_number=True, spare=1),)
_LAST_WIDE: Final = (
    *_LAST,
    Column("ADMITTED", is_number=True, spare=6),
    Column("STRATEGY", spare=7),
    Column("SHARE", is_number=True, spare=5),
    Column("LOCAL QUEUES", is_name=True, spare=8),
)
_WHAT: Final = (Column("FLAVOR", may_be_cut=True), Column("RESOURCE", may_be_cut=True))
_AMOUNTS: Final = (
    Column("USED", is_number=True),
    Column("QUOTA", is_number=True),
    Column("BORROWED", is_number=True, spare=2),
    Column("LENT", is_number=True, spare=3),
    Column("RESERVED", is_number=True, spare=4),
)
_MORE: Final = (
    Column("FREE", is_number=True),
    Column("MAY BORROW", is_number=True, spare=5),
    Column("MAY LEND", is_number=True, spare=5),
)
_OFTEN_BLANK: Final = frozenset(
    ("BORROWED", "LENT", "RESERVED", "MAY BORROW", "MAY LEND", "SHARE", "LOCAL QUEUES")
)


def _without_blank(columns: Sequence[Column], lines: Sequence[Sequence[Cell]]) -> Table:
    """A table without the columns that say nothing here."""
    kept = [
        at
        for at, column in enumerate(columns)
        if column.title not in _OFTEN_BLANK or any(line[at] for line in lines)
    ]
    return Table([columns[at] for at in kept], ([line[at] for at in kept] for line in lines))


class _Drawing:
    """The cells of queues and cohorts."""

    def __init__(self, with_bars: bool, wide: bool, ascii_only: bool) -> None:
        self._wide = wide
        self._ascii_only = ascii_only
        self._with_bars = with_bars
        bars = (Column("USE"),) if with_bars else ()
        self.columns = (*_WHAT, *bars, *_AMOUNTS, *(_MORE if wide else ()))

    def cohort(self, row: CohortRow) -> Iterator[Sequence[Cell]]:
        """A line with the name, and where all is shown, or it has quota of its own, what its members share."""
        shown = [each for each in row.quotas if self._wide or each.nominal.amount]
        name = (f"{_INDENT * row.depth}{row.name}/", "bold")
        last = ("", "", "", _number(row.weighted_share), "") if self._wide else ("",)
        return self._lines(name, shown, last)

    def queue(self, row: QueueRow) -> Iterator[Sequence[Cell]]:
        name = (f"{_INDENT * row.depth}{row.name}", "" if row.active else "red")
        last: Sequence[str] = (f"{row.pending:,}",)
        if self._wide:
            share, local = _number(row.weighted_share), ",".join(row.local_queues)
            last = (*last, f"{row.admitted:,}", row.strategy, share, local)
        return self._lines(name, row.quotas, last)

    def _lines(
        self, name: Cell, quotas: Sequence[QuotaRow], last: Sequence[str]
    ) -> Iterator[Sequence[Cell]]:
        """A line for each flavor and resource: what concerns all of them is in the first."""
        if not quotas:
            yield (name, *[""] * len(self.columns), *last)
        for number, quota in enumerate(quotas):
            head, tail = (name, last) if number == 0 else ("", [""] * len(last))
            yield (head, *self.quota(quota), *tail)

    def quota(self, row: QuotaRow) -> Sequence[Cell]:
        whole = row.nominal if row.shared is None else row.shared
        drawn = (bar(row, ascii_only=self._ascii_only),) if self._with_bars else ()
        more = (str(row.free), _number(row.borrowing_limit), _number(row.lending_limit))
        return (
            row.flavor,
            row.resource,
            *drawn,
            str(row.used),
            str(whole),
            *(str(each) if each.amount else "" for each in (row.borrowed, row.lent, row.reserved)),
            *(more if self._wide else ()),
        )


def _number(value: Quantity | int | None) -> str:
    return "" if value is None else f"{value}"
