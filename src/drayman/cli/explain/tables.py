"""The parts of an explanation that are tables: what is left after each test, what holds what, which nodes were candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from drayman.cli.explain.layout import INDENT, age, broken, devices_listed, listed, plain, prose
from drayman.cli.prices import money
from drayman.cli.table import Cell, Column
from drayman.cli.table import Table as NameTable
from drayman.explain.answer import (
    Alternative,
    Explanation,
    Funnel,
    GangAnswer,
    GangMember,
    Holder,
    Step,
)
from drayman.explain.qualities import CRITERIA, Criterion
from drayman.reasons.wording import counted

MOST_HOLDERS: Final = 10
MOST_LOSSES: Final = 6
MOST_MEMBERS: Final = 16
MOST_DOMAINS: Final = 8
_STANDING: Final = {
    "runs": "runs on",
    "placed": "does not run on",
    "fits": "would go to",
    "done": "has finished",
}
"""What a member does, where a node follows or where it sounds better than the word itself."""
_NUMBERS: Final = {
    "runs": "with a node",
    "placed": "with a node but not running",
    "done": "finished",
    "fits": "would fit",
    "no room": "without room",
    "waits": "waiting",
}

_BALANCE: Final = "how much CPU and memory is left there, and how evenly; more is better"

_NODES: Final = 6
_DEVICES: Final = 9
_LEAST_DETAIL: Final = 12
_BESIDE: Final = INDENT + _NODES + _DEVICES + 3 * 2
"""Columns of the terminal that numbers and gaps take up."""


def table() -> Table:
    """A table without lines."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")


def indented(content: RenderableType) -> RenderableType:
    return Padding(content, (0, 0, 0, INDENT))


@dataclass(frozen=True, slots=True)
class _Row:
    test: str
    detail: str
    nodes: int
    devices: int | None
    is_end: bool = False
    """Whether nothing that passed before passes here."""


def funnels(explanation: Explanation, width: int) -> Iterator[RenderableType]:
    """Tests in their order, with the nodes and devices that pass. All in the same columns."""
    groups = [("", _node_rows(explanation)), *map(_device_rows, explanation.funnels)]
    longest = max((len(row.test) for _, rows in groups for row in rows), default=0)
    room = max(width - _BESIDE - longest, _LEAST_DETAIL)
    for title, rows in groups:
        if title:
            yield prose((title, "bold"), indent=INDENT)
        yield indented(_rows(rows, longest, room, show_header=not title))


def _node_rows(explanation: Explanation) -> list[_Row]:
    if not explanation.nodes and not explanation.node_fit:
        return []
    rows = [_Row("all nodes", "", explanation.nodes, None)]
    for step in explanation.node_fit:
        is_end = step.nodes == 0 < rows[-1].nodes
        rows.append(_Row(step.test, _detail(step), step.nodes, None, is_end))
    return rows


def _device_rows(found: Funnel) -> tuple[str, list[_Row]]:
    rows: list[_Row] = []
    for step in found.steps:
        rows.append(_Row(step.test, _detail(step), step.nodes, step.devices, step.nodes == 0))
        if step.nodes == 0:
            break  # nothing reaches the tests below
    wanted = f"{found.wanted:,} wanted" if found.wanted else "all wanted"
    return f"claim {plain(found.claim)}, request {plain(found.request)}: {wanted}", rows


def _rows(rows: Sequence[_Row], longest: int, room: int, *, show_header: bool) -> Table:
    drawn = table()
    drawn.show_header = show_header
    drawn.add_column("test", width=longest, no_wrap=True)
    drawn.add_column("nodes", width=_NODES, justify="right", no_wrap=True)
    drawn.add_column("devices", width=_DEVICES, justify="right", no_wrap=True)
    drawn.add_column("", width=room, overflow="fold", style="dim")
    for row in rows:
        style = "bold red" if row.is_end else ""
        devices = "" if row.devices is None else f"{row.devices:,}"
        drawn.add_row(
            Text(row.test, style),
            Text(f"{row.nodes:,}", style),
            Text(devices, style),
            Text(broken(row.detail, room)),
        )
    return drawn


def _detail(step: Step) -> str:
    losses = f"({_losses(step.lost)})" if step.lost else ""
    return " ".join(filter(None, (plain(step.detail), losses)))


def _losses(lost: Mapping[str, int]) -> str:
    largest = sorted(lost.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{number:,} {plain(why)}" for why, number in largest[:MOST_LOSSES]]
    rest = sum(number for _, number in largest[MOST_LOSSES:])
    return ", ".join([*shown, f"{rest:,} for other reasons"] if rest else shown)


def holders(explanation: Explanation, now: float) -> Iterator[RenderableType]:
    """The holders, what they hold, and for how long."""
    columns = (
        Column("held by", is_name=True, stays=True),
        Column("devices", is_name=True),
        Column("priority", is_number=True, spare=2),
        Column("for", spare=1),
    )
    found = explanation.holders
    yield NameTable(
        columns,
        [
            (
                _holder(holder),
                devices_listed(holder.devices),
                "" if holder.priority is None else str(holder.priority),
                age(holder.since, now),
            )
            for holder in found[:MOST_HOLDERS]
        ],
        header="dim",
        indent=INDENT,
    )
    if rest := len(found[MOST_HOLDERS:]) + explanation.holders_left_out:
        yield prose((f"and {rest:,} more", "dim"), indent=INDENT)


def _holder(holder: Holder) -> str:
    if not holder.visible:
        return "hidden from you"
    if holder.count > 1:
        kind, _, name = plain(holder.workload).partition("/")
        number = counted(len(holder.pods), "pod") if holder.pods else counted(holder.count, "claim")
        return f"{plain(holder.namespace)}/{name} ({kind}, {number})"
    what = listed(holder.pods) if holder.pods else f"claim {plain(holder.claim)}"
    text = f"{plain(holder.namespace)}/{what}" if holder.namespace else what
    if holder.workload:
        text += f" ({plain(holder.workload)})"
    if holder.lost:
        text += f", whose claim {plain(holder.claim)} was {plain(holder.lost)}"
    return text


def alternatives(found: Sequence[Alternative]) -> Iterator[RenderableType]:
    """The nodes that were candidates, and what counted."""
    has_prices = any(node.spot or node.price_per_hour is not None for node in found)
    criteria = [CRITERIA.get(name) or Criterion(name, name, "") for name in _qualities(found)]
    columns = (
        Column("", empty=" "),
        Column("node", is_name=True, stays=True),
        Column("preferred", is_number=True),
        *([Column("price/h", is_number=True)] if has_prices else []),
        *(Column(each.title, is_number=True) for each in criteria),
        Column("balance", is_number=True),
        Column("", is_name=True, empty=""),
    )
    rows: list[Sequence[Cell]] = []
    for node in found:
        style = "bold green" if node.chosen else ""
        qualities = [_number(node.quality.get(criterion.name)) for criterion in criteria]
        rows.append(
            (
                ("*" if node.chosen else "", "bold green"),
                (plain(node.node), style),
                _number(node.preference),
                *([_price(node)] if has_prices else []),
                *qualities,
                _number(node.balance),
                (plain(node.refusal), "dim"),
            )
        )
    yield NameTable(columns, rows, header="dim", indent=INDENT)
    for criterion in (criterion for criterion in criteria if criterion.meaning):
        yield prose((f"{criterion.title}: {criterion.meaning}", "dim"), indent=INDENT)
    if len(found) > 1:
        yield prose((f"balance: {_BALANCE}", "dim"), indent=INDENT)
    else:
        said = "no node" if found[0].refusal else "it is the only node that"
        yield prose((f"{said} would take it", "dim"), indent=INDENT)


def _price(node: Alternative) -> str:
    price = "" if node.price_per_hour is None else money(node.price_per_hour)
    return f"{price} spot".strip() if node.spot else price


def _qualities(found: Sequence[Alternative]) -> list[str]:
    """The qualities in which the nodes differ; where all are alike there is nothing to compare."""
    scored = [each.quality for each in found if each.quality]
    names = dict.fromkeys(name for quality in scored for name in quality)
    return [name for name in names if len({quality.get(name) for quality in scored}) > 1]


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def gang(found: GangAnswer) -> Iterator[RenderableType]:
    """How near the members are to each other, what domains hold, and what becomes of each member."""
    if found.needs > 1:
        states = Counter(member.state for member in found.members)
        numbers = [
            f"{states[state]:,} {words}" for state, words in _NUMBERS.items() if states[state]
        ]
        text = f"{found.needs:,} pods start together: {', '.join(numbers) or 'there are none'}"
        yield prose(text, indent=INDENT)
    placed = sum(member.has_node for member in found.members)
    if placed and found.where:
        yield prose(f"{counted(placed, 'pod')} {plain(found.where)}", indent=INDENT)
    if found.domains and found.required:
        when = "with nothing in use" if found.even_empty else "now"
        columns = (
            Column("domain", is_name=True, stays=True),
            Column(f"holds {when}", is_number=True),
        )
        rows = []
        for each in found.domains[:MOST_DOMAINS]:
            held = [f"{have:,} of {n:,}" for have, n in zip(each.holds, found.wanted, strict=True)]
            rows.append((plain(each.domain), ", ".join(held)))
        yield NameTable(columns, rows, header="dim", indent=INDENT)
        if (more := len(found.domains) - MOST_DOMAINS) > 0:
            yield prose((f"and {more:,} more, which hold no more", "dim"), indent=INDENT)
    if found.members:
        yield _members(found.members[:MOST_MEMBERS])
    if (rest := len(found.members) - MOST_MEMBERS) > 0:
        yield prose((f"and {rest:,} more", "dim"), indent=INDENT)


def _members(members: Sequence[GangMember]) -> NameTable:
    has_parts = any(member.subgroup for member in members)
    columns = (
        Column("pod", is_name=True, stays=True),
        *([Column("subgroup", is_name=True)] if has_parts else []),
        Column(""),
        Column("node", is_name=True),
    )
    rows: list[Sequence[Cell]] = [
        (
            plain(member.pod),
            *([plain(member.subgroup)] if has_parts else []),
            (
                _STANDING.get(member.state, member.state),
                "bold red" if member.state == "no room" else "",
            ),
            plain(member.node),
        )
        for member in members
    ]
    return NameTable(columns, rows, header="dim", indent=INDENT)
