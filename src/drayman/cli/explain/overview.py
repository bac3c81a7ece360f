"""What is shown about many objects at once: what waits in a namespace, and a node with its devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from drayman.cli.explain.layout import INDENT, plain, prose, section
from drayman.cli.explain.tables import indented, table
from drayman.explain.answer import DeviceCount, Explanation
from drayman.placement.occupancy import State
from drayman.questions.subjects import KINDS
from drayman.reasons.reason import Outlook
from drayman.reasons.wording import counted

OVERVIEWS: Final = ("Namespace", "Cluster")
MOST_ROWS: Final = 20
"""Listed for one reason; the rest is only counted."""


def waiting(
    explanation: Explanation, styles: Mapping[Outlook | None, str]
) -> Iterator[RenderableType]:
    """What waits, by reason."""
    everywhere = explanation.kind == "Cluster"
    for reason, group in groupby(explanation.parts, key=lambda part: part.headline.reason):
        parts = list(group)
        total = sum(part.count for part in parts)
        title = prose((reason.title, styles[reason.kind]), f": {total:,}")
        yield ""
        yield title
        yield from _rows(parts, everywhere=everywhere)
    # Anything may make pods, and not all of it can be explained.
    first = next((part for part in explanation.parts if part.kind.lower() in KINDS), None)
    if first is not None:
        command = f"drayman explain {_name(first)} -n {plain(first.namespace)}"
        yield section("what would help", "for one of them", prose((command, "cyan"), indent=INDENT))


def node(explanation: Explanation) -> Iterator[RenderableType]:
    """The devices of a node, and the pods that wait and do not go there."""
    if explanation.taints:
        words = ", ".join(map(plain, explanation.taints))
        yield prose(("taints: ", "dim"), words)
    if explanation.counts:
        yield section("devices", "", _devices(explanation.counts))


def kept_away(explanation: Explanation) -> Iterator[RenderableType]:
    """The pods that wait, and what keeps them from a node."""
    if explanation.parts:
        rows = _rows(explanation.parts, everywhere=True)
        yield section("who waits", "and why not here", *rows)


def _rows(parts: Sequence[Explanation], *, everywhere: bool) -> Iterator[RenderableType]:
    found = table()
    found.show_header = False
    found.add_column("", overflow="fold", ratio=2)
    found.add_column("", overflow="fold", ratio=3)
    for part in parts[:MOST_ROWS]:
        name = _name(part)
        text = Text(f"{plain(part.namespace)} {name}" if everywhere and part.namespace else name)
        if part.count > 1:  # a workload without pods stands for itself
            text.append(f" ({counted(part.count, 'pod')})", "dim")
        said = [part.headline.sentence, *map(as_refusal, part.refusals)]
        found.add_row(text, Text(plain(" ".join(said)), "dim"))
    yield indented(found)
    if rest := len(parts[MOST_ROWS:]):
        yield prose((f"and {rest:,} more", "dim"), indent=INDENT)


def as_refusal(text: str) -> str:
    """What drivers and nodes will refuse, as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def _name(part: Explanation) -> str:
    """As it is named on the command line."""
    return f"{part.kind.lower()}/{plain(part.name)}"


def _devices(counts: Sequence[DeviceCount]) -> RenderableType:
    states = [state.value for state in State if any(state in each.states for each in counts)]
    found = table()
    found.add_column("driver", overflow="fold")
    for title in ("all", *states):
        found.add_column(title, justify="right", no_wrap=True)
    for each in counts:
        numbers = [f"{each.states.get(state, 0):,}" for state in states]
        found.add_row(plain(each.driver), f"{each.total:,}", *numbers)
    return indented(found)
