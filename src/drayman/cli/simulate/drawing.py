"""The report of a replayed trace on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from drayman.cli.output import print_verbatim
from drayman.cli.prices import money
from drayman.cli.table import Column, Table
from drayman.printable import printable
from drayman.questions.trace import RECORDED
from drayman.simulate.trace.report import PolicySummary, TraceReport
from drayman.simulate.trace.rooms import CAUSES

if TYPE_CHECKING:
    from rich.console import Console

_COLUMNS = (
    Column("WORKLOAD", may_be_cut=True),
    Column("POLICY"),
    Column("SEEDS", is_number=True, spare=3),
    Column("ALLOCATED", is_number=True),
    Column("LOWEST", is_number=True, spare=1),
    Column("FRAGMENTED", is_number=True),
    Column("PLACED", is_number=True, spare=2),
    Column("ALIGNED", is_number=True, empty="-"),
    Column("WAITED", is_number=True, empty="-"),
    Column("COST/H", is_number=True, empty="-"),
)


def drawn(found: TraceReport, out: Console) -> None:
    """Print it."""
    table = Table(_COLUMNS, [_row(each) for each in found.summaries])
    if out.is_terminal:
        out.print(table.text(out.width))
    else:
        print_verbatim(table.plain())
    out.print()
    best = next((each for each in found.summaries if each.policy == "best"), found.summaries[0])
    when = " when the last task has come" if found.arrivals == RECORDED else ""
    whose = f"{printable(best.policy)}, {printable(best.workload)}"
    out.print(f"What is not allocated{when} ({whose}):")
    for line in _causes(best):
        out.print(f"  {line}")
    out.print(_about(found), style="dim")


def _row(summary: PolicySummary) -> list[str]:
    return [
        summary.workload,
        summary.policy,
        str(summary.seeds),
        percent(summary.allocated),
        percent(summary.lowest),
        percent(summary.fragmented),
        percent(summary.placed),
        percent(summary.aligned),
        seconds(summary.waiting_mean),
        "-" if summary.cost_per_hour is None else money(summary.cost_per_hour),
    ]


def _causes(summary: PolicySummary) -> Iterator[str]:
    for cause, text in CAUSES.items():
        if summary.lost[cause] >= 0.00005:
            yield f"{percent(summary.lost[cause]):>7}  {text}"


def _about(found: TraceReport) -> str:
    size = f"{found.nodes:,} nodes, {found.gpus:,} GPUs"
    if found.arrivals == RECORDED:
        return f"{size}; tasks as recorded, up to {found.load * 100:.0f} % of the GPUs at a time."
    return f"{size}; random tasks that ask for {found.load * 100:.0f} % of the GPUs."


def percent(share: float | None) -> str:
    """A part of something; a dash if it is not known."""
    return "-" if share is None else f"{100 * share:.2f} %"


def seconds(time: float | None) -> str:
    """A mean time; a dash if it is not known."""
    return "-" if time is None else f"{time:,.0f} s"
