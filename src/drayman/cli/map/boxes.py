"""The map of one node: boxes in boxes, package, NUMA node and PCIe root, with the devices in them and their holders.

Holders have colours, and their names beside the devices, so that nothing is lost without colour. Partitions are shown inside their GPU:
those that are held one by one, the others as what is still available of each profile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from drayman.api.core import Node
from drayman.cli.map.bars import words
from drayman.cli.table import STYLES, cut
from drayman.cli.top.refreshing import as_text
from drayman.placement.fit.readiness import closed_by
from drayman.placement.occupancy import DeviceStanding, State
from drayman.printable import printable
from drayman.questions.devices.node_layout import NodeLayout, NumaNode, Package, Root, layout
from drayman.questions.devices.node_map import node_map
from drayman.questions.devices.node_places import node_places
from drayman.questions.devices.reading import UNSEEN_HOLDER, Reading, Share, memory_limits
from drayman.reasons.naming import taint_title
from drayman.simulate.capacity_left import capacity_use
from drayman.simulate.unit_counts import HELD, Unit, count_by_kind
from drayman.topology import LevelKind

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

HOLDER_STYLES: Final = (
    "bold green",
    "bold magenta",
    "bold yellow",
    "bold bright_blue",
    "bold cyan",
)
SIDE_BY_SIDE: Final = 140
"""From this width on, NUMA nodes are shown side by side."""
_LONGEST_NAME: Final = 40
_STATE: Final = 12
_FRAMES: Final = 16
"""Columns that the frames around a device take up: of its package, its NUMA node, its PCIe root and its unit."""
_REACHED_SHOWN: Final = 8


class NodeDrawing:
    """The map of one node."""

    def __init__(self, reading: Reading, node: Node) -> None:
        self._reading = reading
        self._node = node
        self._layout: NodeLayout = layout(reading, node)
        self._units = self._layout.units
        shown = [s.id.device for unit in self._units for s in unit.members if _has_line(s, unit)]
        self._name = min(max(map(len, shown), default=0), _LONGEST_NAME)
        self._styles: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        for unit in (*self._units, *self._layout.reached):
            for standing in unit.members:
                for holder in reading.holders(standing.id):
                    style = HOLDER_STYLES[len(self._styles) % len(HOLDER_STYLES)]
                    self._styles.setdefault(holder, style)

    def data(self) -> Mapping[str, Any]:
        from drayman.api import codec

        return codec.to_dict(node_map(self._reading, self._node, self._layout))

    def plain(self, out: Console) -> str:
        return as_text(self.drawn(out), out)

    def drawn(self, out: Console) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        parts: list[RenderableType] = [*self._heading()]
        wide = out.width >= SIDE_BY_SIDE
        self._labels = self._named((out.width // 2 if wide else out.width) - _FRAMES)
        parts += self._packages(wide=wide)
        if self._layout.reached:
            parts.append(self._reached())
        if not self._units and not self._layout.reached:
            parts.append(Text("no devices"))
        for holder, label in self._labels.items():
            if label != holder:
                text = f"{label}  {printable(holder)}"
                style = self._styles[holder]
                parts.append(Text(text, style=style, no_wrap=True, overflow="ignore"))
        return Group(*parts)

    def _named(self, width: int) -> dict[str, str]:
        """What holders are called in boxes of that width: their names, or, if one is too long, numbers that are explained below."""
        longest = max(map(len, self._styles), default=0)
        members = (standing for unit in self._units for standing in unit.members)
        limits = max(
            (sum(len(text) + 2 for text in self._limits(each)) for each in members), default=0
        )
        if longest <= width - self._name - _STATE - 2 - limits:
            return {holder: holder for holder in self._styles}
        return {holder: f"#{number}" for number, holder in enumerate(self._styles, 1)}

    def _heading(self) -> Iterator[Text]:
        from rich.text import Text

        line = Text(self._node.metadata.name, style="bold")
        for each in node_places(self._node, self._units):
            if each.kind is LevelKind.HOST:
                continue
            line.append(f"  {each.kind.title} ", style="dim not bold")
            line.append(cut(printable(each.value), 24), style="not bold")
        yield line
        if closed := closed_by(self._node):
            why = " and ".join(each.words for each in closed)
            yield Text(f"takes no pods: {why}", style="yellow")
        counts = count_by_kind(self._units)
        for kind, numbers in counts.items():
            yield Text(f"{kind.value:<6}{words(numbers)} of {sum(numbers.values())}")

    # --- Boxes ------------------------------------------------------------------------------------

    def _packages(self, *, wide: bool) -> list[RenderableType]:
        """All packages. On a wide terminal two boxes are side by side: packages, or the NUMA nodes of the only package."""
        known = [package for package in self._layout.packages if package.number is not None]
        unknown = [package for package in self._layout.packages if package.number is None]
        abreast = wide and len(known) > 1
        boxes = [self._package(package, wide=wide and not abreast) for package in known]
        found: list[RenderableType] = [_in_pairs(boxes)] if abreast else list(boxes)
        return [*found, *(self._package(package, wide=wide) for package in unknown)]

    def _package(self, package: Package, *, wide: bool) -> RenderableType:
        from rich.console import Group

        numa: list[RenderableType] = [self._numa(each) for each in package.numa_nodes.values()]
        inner = _in_pairs(numa) if wide else Group(*numa)
        return inner if package.number is None else _box(f"package {package.number}", [inner])

    def _numa(self, numa: NumaNode) -> RenderableType:
        parts: list[RenderableType] = []
        for root in numa.roots.values():
            lines = self._root(root)
            parts += [_box(root.name, lines)] if root.name else lines
        title = "place not published" if numa.number is None else f"NUMA node {numa.number}"
        return _box(title, parts)

    def _root(self, root: Root) -> list[RenderableType]:
        return [part for unit in root.units for part in self._unit(unit)]

    def _unit(self, unit: Unit) -> Iterator[RenderableType]:
        if len(unit.members) == 1:
            yield from self._device(unit.members[0])
            return
        whole = unit.whole
        if whole is not None and whole.state in (State.FREE, State.UNKNOWN):
            yield from (line.append("or in parts", style="dim") for line in self._device(whole))
            return
        if whole is not None and whole.state is State.UNAVAILABLE and whole.closed:
            yield from self._device(whole)
            return
        lines: list[RenderableType] = []
        for standing in unit.members:
            if _has_line(standing, unit):
                lines += self._device(standing)
        lines += self._on_offer(unit)
        yield _box(f"{unit.kind} {unit.id.name}: {unit.state}", lines)

    def _device(self, standing: DeviceStanding) -> Iterator[Text]:
        """A line for the device; one more for each holder of a device that is shared."""
        from rich.text import Text

        line = Text(no_wrap=True, overflow="ellipsis")
        style = self._style(standing)
        name = cut(standing.id.device, self._name).ljust(self._name)
        line.append(name, style=style).append("  ")
        line.append(standing.state.value.ljust(_STATE), style=STYLES[standing.state])
        shares = self._reading.shares.get(standing.id, ())
        if standing.state is State.SHARED:
            taken = [f"{use.name} {use.taken}/{use.total}" for use in capacity_use(standing)]
            line.append(", ".join(taken))
        elif standing.state is State.UNKNOWN:
            line.append(UNSEEN_HOLDER, style="dim")
        elif shares:
            line.append("".join(f"{text}  " for text in self._limits(standing)))
            holders = self._reading.holders(standing.id)
            line.append(", ".join(self._labels[holder] for holder in holders), style=style)
        if standing.taints:
            taints = ", ".join(taint_title(*taint) for taint in standing.taints)
            line.append(f"{'  ' if shares else ''}{taints}", style="red")
        line.append(standing.why, style="dim")
        yield line
        if standing.state is State.SHARED:
            for share in shares:
                yield self._share(share, standing)

    def _limits(self, standing: DeviceStanding) -> list[str]:
        """The memory limits of the claims that share a device."""
        shares = self._reading.shares.get(standing.id, ())
        return [text for share in shares for text in memory_limits(share, standing)]

    def _share(self, share: Share, standing: DeviceStanding) -> Text:
        from rich.text import Text

        line = Text("  ", no_wrap=True, overflow="ellipsis")
        line.append(self._labels[share.holder], style=self._styles[share.holder])
        consumed = [f"{name.rpartition('/')[2]} {q}" for name, q in share.consumed.items()]
        return line.append("  " + ", ".join((*consumed, *memory_limits(share, standing))))

    def _on_offer(self, unit: Unit) -> Iterator[Text]:
        """What is still available of a unit that is offered in parts, by profile."""
        from rich.text import Text

        rest: dict[State, Counter[str]] = {}
        for standing in unit.members:
            if standing.state not in HELD:
                rest.setdefault(standing.state, Counter())[profile_of(standing, unit)] += 1
        for state in (State.FREE, State.UNKNOWN, State.TAINTED):
            if state in rest:
                names = [f"{name} x{number}" for name, number in rest[state].items()]
                line = Text(f"{state.value}: ", style=STYLES[state])
                yield line.append(", ".join(names), style="default")

    def _reached(self) -> RenderableType:
        from rich.text import Text

        units = self._layout.reached
        parts: list[RenderableType] = []
        for unit in units[:_REACHED_SHOWN]:
            parts += self._unit(unit)
        rest = units[_REACHED_SHOWN:]
        for kind, numbers in count_by_kind(rest).items():
            parts.append(Text(f"and {sum(numbers.values()):,} more ({kind}): {words(numbers)}"))
        return _box("reached over the network", parts)

    def _style(self, standing: DeviceStanding) -> str:
        holders = self._reading.holders(standing.id)
        return self._styles[holders[0]] if holders else ""


def _has_line(standing: DeviceStanding, unit: Unit) -> bool:
    """Whether a device is shown by itself: every unit is, and every part of a unit that is held."""
    return len(unit.members) == 1 or standing.state in (State.USED, State.SHARED)


def profile_of(standing: DeviceStanding, unit: Unit) -> str:
    """What a part of a unit is called: its profile where the driver names one, else its name without the unit's."""
    if standing is unit.whole:
        return "whole"
    attributes = standing.record.device.attributes
    found = attributes.get("profile") or attributes.get(f"{standing.id.driver}/profile")
    if found is not None and found.string is not None:
        return printable(found.string)
    return standing.id.device.removeprefix(f"{unit.id.name}-")


def _box(title: str | None, parts: list[RenderableType]) -> RenderableType:
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    # Drivers choose the names: treat them as text, not as markup or control sequences.
    name = None if title is None else Text(printable(title))
    return Panel(Group(*parts), title=name, title_align="left", border_style="dim", padding=(0, 1))


def _in_pairs(parts: list[RenderableType]) -> RenderableType:
    from rich.table import Table

    grid = Table.grid(expand=True)
    for _ in range(min(2, len(parts))):
        grid.add_column(ratio=1)
    for at in range(0, len(parts), 2):
        grid.add_row(*parts[at : at + 2])
    return grid
