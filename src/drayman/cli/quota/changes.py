"""Changes of prices as text for people: how many workloads, then those that change alike, together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult

from drayman.cli.explain.layout import INDENT, Trimmed, prose
from drayman.questions.quota_changes import ADMITTED, ChangesAnswer, PriceChange
from drayman.reasons.wording import counted


@dataclass(frozen=True, slots=True)
class ChangesDrawing:
    """What changes, drawn for any width."""

    answer: ChangesAnswer

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Trimmed(Group(*self._parts()))

    def _parts(self) -> Iterator[RenderableType]:
        answer = self.answer
        yield prose((_summary(answer), "bold"))
        if answer.fields:
            yield prose((f"says something else: {', '.join(answer.fields)}", "dim"))
        for number, alike in enumerate(_alike(answer.changes)):
            if not number:
                yield ""
            yield from _change(alike)
        if answer.admitted:
            text = "Admitted workloads keep what they hold until they are queued again."
            yield from ("", prose((text, "dim")))
        for problem in answer.problems:
            yield prose((f"left out: {problem}", "yellow"))
        if answer.unseen:
            yield prose(
                (
                    f"not taken into account, for want of rights: {', '.join(answer.unseen)}",
                    "yellow",
                )
            )


def _summary(answer: ChangesAnswer) -> str:
    if not answer.changes:
        return f"No price changes: {counted(answer.workloads, 'workload')} looked at."
    return (
        f"{answer.pending:,} pending and {answer.admitted:,} admitted"
        f" of {counted(answer.workloads, 'workload')} would change price."
    )


def _alike(changes: tuple[PriceChange, ...]) -> list[list[PriceChange]]:
    """Those that change in the same way, the most first; what becomes impossible before all others."""
    groups: dict[object, list[PriceChange]] = {}
    for each in changes:
        sameness = (each.namespace, each.local_queue, each.state, str(each.now), str(each.then))
        groups.setdefault(sameness, []).append(each)
    return sorted(groups.values(), key=lambda group: (not group[0].then.no_price, -len(group)))


def _change(alike: list[PriceChange]) -> Iterator[RenderableType]:
    first = alike[0]
    more = f" and {counted(len(alike) - 1, 'other')}" if len(alike) > 1 else ""
    style = "green" if first.state == ADMITTED else ""
    yield prose(
        (f"{first.namespace}/{first.name}{more}", "bold"),
        f" in queue {first.local_queue}, ",
        (first.state, style),
    )
    names = sorted({*first.now.resources, *first.then.resources})
    for which, price in (("now", first.now), ("then", first.then)):
        if price.no_price:
            yield prose(f"{which:5}", ("no price", "red"), f": {price.no_price}", indent=INDENT)
        else:
            said = ", ".join(f"{price.resources.get(name, '0')} {name}" for name in names)
            yield prose(f"{which:5}{said or 'nothing'}", indent=INDENT)
