"""An explanation as text for people: the answer first, then the evidence, then what would help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding

from drayman.cli.explain import overview
from drayman.cli.explain.layout import (
    INDENT,
    Trimmed,
    devices_listed,
    plain,
    prose,
    section,
    shell,
)
from drayman.cli.explain.queue import queue_sections
from drayman.cli.explain.tables import alternatives, funnels, gang, holders
from drayman.explain.answer import Explanation, Miss, Remedy, Spelling, StatedAlignment, Value
from drayman.explain.hidden import OUTSIDE
from drayman.questions.subjects import BENEFICIARIES
from drayman.reasons.reason import Headline, Outlook, Reason
from drayman.reasons.wording import counted

STYLES: Final = {
    None: "bold green",
    Outlook.NEVER: "bold red",
    Outlook.NOT_NOW: "bold magenta",
    Outlook.NOT_HERE: "bold magenta",
    Outlook.HELD: "bold cyan",
}
MOST_REMEDIES: Final = 8
_NOT_YET_THERE: Final = (Reason.FITS, Reason.NO_SCHEDULER)
_IN_WRONG_PLACES: Final = frozenset(
    {
        Reason.FRAGMENTED,
        Reason.GANG_SCATTERED,
        Reason.GANG_TOO_LARGE,
        Reason.MISALIGNED,
        Reason.REQUESTS_COMPETE,
    }
)
"""Where moving other pods may help. Of what is free on several nodes, a gang that is too large may get enough on one."""
_AMONG: Final = {"matching": "device that would do otherwise", "all": "device"}
MOST_OBSTACLES: Final = 6


@dataclass(frozen=True, slots=True)
class Drawing:
    """An explanation, drawn for any width. `now` is when the cluster was read."""

    explanation: Explanation
    now: float

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Trimmed(Group(*_whole(self.explanation, self.now, options.max_width)))


def _whole(explanation: Explanation, now: float, width: int) -> Iterator[RenderableType]:
    yield headline(explanation.headline)
    if explanation.kind != "Cluster":  # which has no name
        yield prose((_subject(explanation), "dim"))
    if explanation.unseen:
        yield unseen(explanation.unseen)
    if explanation.kind in overview.OVERVIEWS:
        yield from overview.waiting(explanation, STYLES)
    elif explanation.kind == "Node":
        yield from _node(explanation, now)
    else:
        yield from _object(explanation, now, width)
        yield from _moves(explanation, width)
    yield from _evidence(explanation)


def _node(explanation: Explanation, now: float) -> Iterator[RenderableType]:
    yield from overview.node(explanation)
    if explanation.holders:
        yield section("who holds it", "", *holders(explanation, now))
    yield from overview.kept_away(explanation)


def _object(explanation: Explanation, now: float, width: int) -> Iterator[RenderableType]:
    yield from _grounds(explanation, now, width)
    for part in explanation.parts:
        yield ""
        inner = [headline(part.headline), prose((_subject(part), "dim"))]
        inner += _grounds(part, now, width - INDENT)
        yield Padding(Group(*inner), (0, 0, 0, INDENT))


def headline(line: Headline) -> RenderableType:
    """The first line: the word, its kind, the sentence."""
    style = "bold red" if line.reason is Reason.FAILED else STYLES[line.reason.kind]
    return prose((line.reason.title, style), f": {plain(line.sentence)}")


def _subject(explanation: Explanation) -> str:
    name = "/".join(filter(None, (explanation.namespace, explanation.name)))
    parts = [f"{explanation.kind.lower()} {plain(name)}"]
    if explanation.count > 1:
        parts.append(f"and {explanation.count - 1:,} more like it")
    if explanation.node:
        verb = "would go to" if explanation.headline.reason in _NOT_YET_THERE else "on"
        parts.append(f"{verb} {plain(explanation.node)}")
    if explanation.devices:
        parts.append(f"with {devices_listed(explanation.devices, explanation.node)}")
    return " ".join(parts)


def unseen(what: tuple[str, ...]) -> RenderableType:
    """What the answer does not take into account: of the whole cluster, and of all namespaces but one."""
    entirely: list[str] = []
    outside: dict[str, list[str]] = {}
    for each in what:
        name, partly, namespace = each.partition(OUTSIDE)
        (outside.setdefault(namespace, []) if partly else entirely).append(name)
    parts = [", ".join(entirely)] if entirely else []
    parts += [f"{OUTSIDE.strip()} {place}: {', '.join(names)}" for place, names in outside.items()]
    return prose(
        ("Not taken into account, because you may not list it: ", "bold"), "; ".join(parts)
    )


def _grounds(explanation: Explanation, now: float, width: int) -> Iterator[RenderableType]:
    """What the answer is based on, and what to do about it."""
    if explanation.refusals:
        yield refused(explanation.refusals)
    if explanation.spelling:
        found = [_spelling(each) for each in explanation.spelling]
        yield section("spelling", "", *found)
    if explanation.values:
        found = [_value(each) for each in explanation.values]
        yield section("values", "that there are", *found)
    if explanation.node_fit or explanation.funnels:
        yield section("what is left", "after each test", *funnels(explanation, width))
    if explanation.gang is not None:
        yield section("the gang", plain(explanation.gang.name), *gang(explanation.gang))
    if explanation.queue is not None:
        yield from queue_sections(explanation.queue, now)
    if explanation.nearest is not None:
        yield _nearest(explanation.nearest)
    if explanation.holders:
        yield section("who holds it", "", *holders(explanation, now))
    if explanation.estimate is not None:
        yield section(
            "estimated start", "", prose(plain(explanation.estimate.sentence), indent=INDENT)
        )
    if explanation.headline.reason.kind is not None and not explanation.parts:
        yield from _remedies(explanation, width)
    if explanation.alignment:
        yield section("alignment", "as stated", *map(_alignment, explanation.alignment))
    if explanation.alternatives:
        reason = explanation.headline.reason
        is_here = reason.kind is None or reason is Reason.NOT_STARTED
        title = "why here" if is_here else "where it could go"
        yield section(title, "best nodes first", *alternatives(explanation.alternatives))


def refused(why: Iterable[str]) -> RenderableType:
    """What drivers and nodes will refuse."""
    lines = [prose(plain(overview.as_refusal(text)), indent=INDENT) for text in why]
    return section("what keeps it from starting", "once it has its devices", *lines)


def _spelling(found: Spelling) -> RenderableType:
    request = f", request {plain(found.request)}" if found.request else ""
    where = f"claim {plain(found.claim)}{request}: "
    lines = [
        prose(
            where,
            f"no device has the {found.what} ",
            (plain(found.attribute), "bold red"),
            indent=INDENT,
        ),
        prose((f"in: {plain(found.selector)}", "dim"), indent=2 * INDENT),
    ]
    for name, devices in found.similar:
        like = f" is on {counted(devices, 'device')}"
        lines.append(prose((plain(name), "bold green"), like, indent=2 * INDENT))
    return Group(*lines)


def _value(found: Value) -> RenderableType:
    where = f"claim {plain(found.claim)}, request {plain(found.request)}: "
    what = found.name or found.what
    wrong = (f"{plain(what)} {plain(found.wanted)}", "bold red")
    lines = [
        prose(where, f"no {_AMONG[found.among]} has ", wrong, indent=INDENT),
        prose((f"in: {plain(found.condition)}", "dim"), indent=2 * INDENT),
    ]
    for value, devices in found.existing:
        has = f" is on {counted(devices, 'device')}"
        lines.append(prose((plain(value), "bold green"), has, indent=2 * INDENT))
    if found.more:
        more = f"and {counted(found.more, 'more value')}"
        lines.append(prose((more, "dim"), indent=2 * INDENT))
    return Group(*lines)


def _alignment(found: StatedAlignment) -> RenderableType:
    requests = ", ".join(map(plain, found.requests))
    what = f"claim {plain(found.claim)}, {requests}: "
    lines = [
        prose(what, (plain(found.level), "bold"), f", score {found.score} of 100", indent=INDENT)
    ]
    for choice in found.choices:
        mark = "*" if choice.level == found.level else " "
        nodes = f", the best on {counted(choice.nodes, 'node')}" if choice.nodes else ""
        text = f"{mark} {plain(choice.level)}: {choice.score}{nodes}"
        lines.append(prose((text, "dim"), indent=2 * INDENT))
    return Group(*lines)


def _nearest(miss: Miss) -> RenderableType:
    lines = [prose(plain(miss.sentence), indent=INDENT)]
    if miss.devices:
        lines.append(
            prose(("would do: ", "dim"), devices_listed(miss.devices, miss.node), indent=INDENT)
        )
    if miss.missing:
        lines.append(prose(("missing: ", "dim"), f"{miss.missing:,} more", indent=INDENT))
    lines += _obstacles(miss)
    return section("nearest miss", plain(miss.node), *lines)


def _obstacles(miss: Miss) -> Iterator[RenderableType]:
    """What is in the way of which devices, grouped by obstacle."""
    together: dict[str, list[str]] = {}
    for device, why in miss.blocked.items():
        together.setdefault(why, []).append(device)
    for why, devices in list(together.items())[:MOST_OBSTACLES]:
        names = devices_listed(devices, miss.node)
        yield prose((f"{names}: ", "dim"), plain(why), indent=INDENT)
    if rest := sum(map(len, list(together.values())[MOST_OBSTACLES:])):
        yield prose((f"and {counted(rest, 'device')} more", "dim"), indent=INDENT)


def _remedies(explanation: Explanation, width: int) -> Iterator[RenderableType]:
    lines: list[RenderableType] = []
    for number, remedy in enumerate(explanation.remedies[:MOST_REMEDIES], start=1):
        lines += _remedy(number, remedy, width)
    for step in explanation.driver_steps:
        lines.append(prose(plain(step.sentence), indent=INDENT))
        lines += shell(step.command, 2 * INDENT, width) if step.command else ()
    reason = explanation.headline.reason
    if not lines and (reason.kind is Outlook.HELD or reason is Reason.GANG_INVALID):
        return  # the sentence already says what has to be done
    if not lines:
        lines.append(prose("No remedy was found that a search confirms.", indent=INDENT))
    if explanation.untried:
        lines.append(prose((plain(explanation.untried), "dim"), indent=INDENT))
    tried = "those with numbers were" if explanation.driver_steps else "each was"
    note = f"{tried} tried by a search" if explanation.remedies else ""
    yield section("what would help", note, *lines)


def _moves(explanation: Explanation, width: int) -> Iterator[RenderableType]:
    """Where enough may be free in the wrong places: the command that looks for pods to move. What is only planned was not read."""
    kind = explanation.kind.lower()
    if (
        not explanation.evidence
        or explanation.headline.reason not in _IN_WRONG_PLACES
        or kind not in BENEFICIARIES
    ):
        return
    command = (
        f"drayman defrag --for {kind}/{plain(explanation.name)} -n {plain(explanation.namespace)}"
    )
    yield section("which pods to move", "if that makes room", *shell(command, INDENT, width))


def _remedy(number: int, remedy: Remedy, width: int) -> Iterator[RenderableType]:
    mark = f"{number}."
    yield prose(plain(remedy.sentence), indent=INDENT, mark=mark)
    inner = INDENT + len(mark) + 1
    then = " ".join(
        filter(
            None,
            (
                f"on {plain(remedy.node)}" if remedy.node else "",
                f"with {devices_listed(remedy.devices, remedy.node)}" if remedy.devices else "",
            ),
        )
    )
    if then:
        yield prose((f"then {then}", "dim"), indent=inner)
    for command in remedy.commands:
        yield from shell(command, inner, width)


def _evidence(explanation: Explanation) -> Iterator[RenderableType]:
    """The versions of what was read: of the lists from the first to the last, and of the object. What is only planned has none."""
    versions = {name: version for name, version in explanation.evidence.items() if version}
    kind = explanation.kind.lower()
    own = versions.pop(kind, "")
    lists = sorted(set(versions.values()), key=lambda version: (len(version), version))
    parts = [f"cluster at resource version {lists[0]}"] if len(lists) == 1 else []
    if len(lists) > 1:
        parts = [f"cluster at resource versions {lists[0]} to {lists[-1]}"]
    if own and lists != [own]:
        parts.append(f"{kind} at {own}")
    if parts:
        yield Group("", prose((f"read: {plain(', '.join(parts))}", "dim")))
