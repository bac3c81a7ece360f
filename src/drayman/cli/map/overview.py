"""The map of a cluster: what there is of each kind of device, then blocks and racks as lines with a bar.

Thousands of nodes make hundreds of racks, which is readable: a line each, under the line of their block. A few nodes are shown one by one,
and more on request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from drayman.cli.map.bars import SEGMENTS, bar, legend, words
from drayman.cli.table import cut
from drayman.cli.top.refreshing import as_text
from drayman.placement.fit.readiness import Closed
from drayman.placement.occupancy import State
from drayman.printable import printable
from drayman.questions.devices.cluster_map import cluster_map
from drayman.questions.devices.floor import Counts, Floor, NodeUse, Rack, floor, total
from drayman.questions.devices.reading import Reading
from drayman.reasons.wording import counted
from drayman.topology import DeviceKind

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

FEW_NODES: Final = 16
_DOMAIN: Final = 8
_CLOSED: Final = 20
_BAR: Final = range(8, 41)
"""How many cells a bar may have."""
_TITLES: Final = {"in part": "PART", "unavailable": "UNAVAIL"}


@dataclass(frozen=True, slots=True)
class _Line:
    """A place and how its devices are used."""

    depth: int
    name: str
    domain: str
    nodes: int | None
    counts: Counter[State]
    closed: str = ""
    """Which of its nodes take no pods."""


class Overview:
    """The map of all nodes."""

    def __init__(
        self,
        reading: Reading,
        *,
        unfold: bool = False,
        kind: str | None = None,
        order: str = "name",
    ) -> None:
        found = floor(reading.nodes, reading.occupancy)
        self._kind = DeviceKind(kind) if kind else next(iter(found.counts), DeviceKind.GPU)
        self._floor = found.sorted_by(order, self._kind)
        self._unfold = unfold or len(reading.nodes) <= FEW_NODES
        lines = _lines(self._floor, self._kind, self._unfold)
        self._lines = [line for line in lines if line.counts]

    def data(self) -> Mapping[str, Any]:
        from drayman.api import codec

        return codec.to_dict(cluster_map(self._floor))

    def drawn(self, out: Console) -> RenderableType:
        from rich.text import Text

        found = [*_summary(self._floor, ascii_only=out.options.ascii_only), Text()]
        if not self._floor.counts:
            return Text("\n").join([found[0], Text("no devices", style="dim")])
        if self._lines:
            found += [*_Drawing(self._lines, self._kind, out).rows(), Text()]
        found += self._without()
        found.append(legend(self._all(), ascii_only=out.options.ascii_only))
        return Text("\n", no_wrap=True, overflow="ignore").join(found)

    def plain(self, out: Console) -> str:
        return as_text(self.drawn(out), out)

    def _without(self) -> list[Text]:
        from rich.text import Text

        nodes = [node for rack in self._floor.racks for node in rack.nodes]
        number = sum(self._kind not in node.counts for node in nodes)
        if not number:
            return []
        verb = "has" if number == 1 else "have"
        return [Text(f"{counted(number, 'node')} {verb} no {self._kind}", style="dim")]

    def _all(self) -> Counter[State]:
        found: Counter[State] = Counter()
        for numbers in self._floor.counts.values():
            found.update(numbers)
        return found


def _lines(found: Floor, kind: DeviceKind, unfold: bool) -> Iterator[_Line]:
    """Blocks, under each its racks, under each its nodes if they are shown. A block of one rack is that rack."""
    for racks in found.blocks:
        depth = 0
        if racks[0].block and len(racks) > 1:
            nodes = sum(len(rack.nodes) for rack in racks)
            counts = _of(total(rack.counts for rack in racks), kind)
            closed = _closed_in(node for rack in racks for node in rack.nodes)
            yield _Line(0, printable(racks[0].block), "", nodes, counts, closed)
            depth = 1
        for rack in racks:
            yield from _rack_lines(rack, depth, kind, unfold)
    if kind in found.elsewhere:
        yield _Line(0, "(not on one node)", "", None, found.elsewhere[kind])


def _rack_lines(rack: Rack, depth: int, kind: DeviceKind, unfold: bool) -> Iterator[_Line]:
    domain = printable(rack.nvlink_domain)
    name = printable(rack.rack or rack.block) or domain
    if name or not unfold:
        counts = _of(rack.counts, kind)
        title, closed = name or "(no rack)", _closed_in(rack.nodes)
        yield _Line(depth, title, domain, len(rack.nodes), counts, closed)
        depth += 1
    for node in rack.nodes if unfold else ():
        closed = ", ".join(each.words for each in node.closed)
        yield _Line(depth, node.name, "", None, _of(node.counts, kind), closed)


def _closed_in(nodes: Iterable[NodeUse]) -> str:
    """How many nodes of a place take no pods; in one word, as lines are short."""
    closed = [node.closed for node in nodes if node.closed]
    whys = {why for each in closed for why in each}
    if not closed:
        return ""
    return f"{len(closed):,} {whys.pop().words if len(whys) == 1 else 'closed'}"


def _closed(numbers: Counter[Closed]) -> str:
    return ", ".join(f"{numbers[why]:,} {why.words}" for why in Closed if numbers[why])


def _of(counts: Counts, kind: DeviceKind) -> Counter[State]:
    return counts.get(kind, Counter())


def _summary(found: Floor, *, ascii_only: bool) -> Iterator[Text]:
    """The totals, a line for each kind."""
    from rich.text import Text

    nodes = sum(len(rack.nodes) for rack in found.racks)
    racks = len({(rack.block, rack.rack) for rack in found.racks if rack.rack})
    domains = len({rack.nvlink_domain for rack in found.racks if rack.nvlink_domain})
    parts = [counted(nodes, "node"), counted(racks, "rack")]
    parts += [counted(domains, "NVLink domain")] if domains else []
    closed = _closed(sum((rack.closed for rack in found.racks), Counter[Closed]()))
    parts += [closed] if closed else []
    yield Text(", ".join(parts), style="bold")
    for kind, counts in found.counts.items():
        line = Text(f"{kind.value:<6}")
        line.append(bar(counts, 20, ascii_only=ascii_only))
        yield line.append(f"  {words(counts)} of {sum(counts.values()):,}")


class _Drawing:
    """Lines with bars, as wide as the terminal allows."""

    def __init__(self, lines: list[_Line], kind: DeviceKind, out: Console) -> None:
        self._lines = lines
        self._kind = kind
        self._ascii_only = out.options.ascii_only
        shown = [
            segment
            for segment in SEGMENTS
            if segment.name in ("used", "free")
            or any(segment.number(line.counts) for line in lines)
        ]
        self._segments = shown
        titles = [_TITLES.get(segment.name, segment.name.upper()) for segment in shown]
        self._titles = ["NODES", *titles, "ALL"]
        self._widths = [
            2 + max(len(title), *(len(self._numbers(line)[at][0]) for line in lines))
            for at, title in enumerate(self._titles)
        ]
        self._domain = _DOMAIN + 2 if any(line.domain for line in lines) else 0
        self._closed = min(max(len(line.closed) for line in lines), _CLOSED)
        beside = self._domain + sum(self._widths) + (self._closed + 2 if self._closed else 0)
        room = out.width - beside - 2
        longest = max(2 * line.depth + len(line.name) for line in lines)
        self._name = min(longest, room - _BAR.start)
        self._bar = min(_BAR.stop - 1, room - self._name)

    def rows(self) -> Iterator[Text]:
        from rich.text import Text

        nodes, *numbers = [t.rjust(w) for t, w in zip(self._titles, self._widths, strict=True)]
        domain = "  NVLINK".ljust(self._domain) if self._domain else ""
        name = self._kind.value.upper().ljust(self._name)
        use = "USE".ljust(self._bar)
        closed = "  STATUS" if self._closed else ""
        yield Text(f"{name}{domain}{nodes}  {use}{''.join(numbers)}{closed}", style="bold")
        for line in self._lines:
            yield from self._rows_of(line)

    def _rows_of(self, line: _Line) -> Iterator[Text]:
        """The row of a place, below its name where that is longer than its column: it is to be copied."""
        from rich.text import Text

        heads = line.depth == 0 and line.nodes is not None
        name = "  " * line.depth + line.name
        if len(name) > self._name:
            yield Text(name, style="bold" if heads else "", no_wrap=True, overflow="ignore")
            name = ""
        row = Text()
        row.append(name.ljust(self._name), style="bold" if heads else "")
        if self._domain:
            row.append(f"  {line.domain[:_DOMAIN]}".ljust(self._domain), style="dim")
        nodes, *numbers = [
            (text.rjust(width), style)
            for (text, style), width in zip(self._numbers(line), self._widths, strict=True)
        ]
        row.append(*nodes).append("  ")
        drawn = bar(line.counts, self._bar, ascii_only=self._ascii_only)
        drawn.pad_right(self._bar - len(drawn))
        row.append(drawn)
        for number in numbers:
            row.append(*number)
        if line.closed:
            row.append(f"  {cut(line.closed, self._closed)}", style="yellow")
        yield row

    def _numbers(self, line: _Line) -> list[tuple[str, str]]:
        """Nodes, devices of each segment, and all devices, with their styles."""
        found = [(line.nodes, "")]
        found += [(segment.number(line.counts), segment.style) for segment in self._segments]
        found.append((sum(line.counts.values()), ""))
        return [
            ("" if number is None else f"{number:,}", style if number else "dim")
            for number, style in found
        ]
