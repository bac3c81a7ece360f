"""Moves as text for people: the answer first, then the steps, what they make room for, and what gets none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding

from drayman.cli.explain.drawing import headline, unseen
from drayman.cli.explain.layout import (
    AS_SEEN,
    INDENT,
    Trimmed,
    devices_listed,
    plain,
    prose,
    section,
    span,
)
from drayman.cli.table import Column, Table
from drayman.explain.hidden import hides_use
from drayman.reasons.wording import and_list, counted
from drayman.simulate.moving.report import (
    DefragReport,
    MovedPod,
    MoveStep,
    Place,
    Room,
    SeatedPod,
)

MOST_STEPS: Final = 40
MOST_ROOMS: Final = 12


@dataclass(frozen=True, slots=True)
class DefragDrawing:
    """A proposal, drawn for any width."""

    report: DefragReport
    subject: str
    """What was asked about; empty: everything that waits."""
    all_steps: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Trimmed(Group(*self._parts()))

    def _parts(self) -> Iterator[RenderableType]:
        report = self.report
        yield _answer(report, self.subject)
        steps = sorted(report.steps, key=lambda step: step.number)
        if steps:
            most = len(steps) if self.all_steps else MOST_STEPS
            yield section("moves", "in this order; each place is free when it is needed")
            yield _moves(steps[:most])
            yield from _rest(len(steps) - most, "--all lists them")
        yield from _made(report.rooms, everything=self.all_steps)
        refused = [room for room in report.rooms if not room.fits]
        yield from _refused(
            refused, "beside what gets room" if len(refused) < len(report.rooms) else ""
        )
        yield from _notes(report)


def _answer(report: DefragReport, subject: str) -> RenderableType:
    rooms = report.rooms
    seen = AS_SEEN if hides_use(report.unseen) else ""
    if not rooms:
        waits = f"{plain(subject)} has no pods that wait" if subject else "no pods wait for devices"
        return prose(("Nothing to do", "bold green"), f"{seen}: {waits}.")
    moved = report.cost.pods
    made = [room for room in rooms if room.fits and room.steps]
    said = (
        f"moving {counted(moved, 'pod')} makes room for {_named(made)}"
        if made
        else "no moves are needed"
        if report.fits
        else "no moves make room"
    )
    if report.fits:
        return prose(("Fits" if made else "Nothing to do", "bold green"), f"{seen}: {said}.")
    without = sum(not room.fits for room in rooms)
    some = "" if not made else f"; {without:,} of {len(rooms):,} get none"
    return prose(("Does not fit", "bold red"), f"{seen}: {said}{some}.")


def _named(rooms: Sequence[Room]) -> str:
    return and_list([plain(room.name) for room in rooms]) if len(rooms) <= 3 else f"{len(rooms):,}"


def _moves(steps: Sequence[MoveStep]) -> RenderableType:
    columns = (
        Column("step", is_number=True),
        Column("pod", is_name=True, stays=True),
        Column("owner", is_name=True),
        Column("from", is_name=True),
        Column("to", is_name=True),
    )
    rows = [
        (
            "" if number else str(step.number),
            plain(_full_name(pod)),
            plain(pod.owner),
            _place(pod.before),
            _place(pod.after),
        )
        for step in steps
        for number, pod in enumerate(step.pods)
    ]
    return Table(columns, rows, header="dim", indent=INDENT)


def _made(rooms: Sequence[Room], *, everything: bool) -> Iterator[RenderableType]:
    """Where those go that get room."""
    fitting = [room for room in rooms if room.fits]
    if not fitting:
        return
    yield section("what gets room", "")
    rows = [(pod, room) for room in fitting for pod in room.pods]
    most = len(rows) if everything else MOST_STEPS
    columns = (
        Column("pod", is_name=True, stays=True),
        Column("to", is_name=True),
        Column("after"),
    )
    cells = [(plain(_full_name(pod)), _place(pod.after), _after(room)) for pod, room in rows[:most]]
    yield Table(columns, cells, header="dim", indent=INDENT)
    yield from _rest(len(rows) - most, "--all lists them")


def _after(room: Room) -> str:
    numbers = sorted(step.number for step in room.steps)
    if not numbers:
        return "no step"
    if len(numbers) == 1:
        return f"step {numbers[0]}"
    return f"steps {numbers[0]} to {numbers[-1]}"


def _refused(rooms: Sequence[Room], note: str) -> Iterator[RenderableType]:
    if not rooms:
        return
    yield section("what gets none", note)
    for room in rooms[:MOST_ROOMS]:
        yield prose((plain(room.name), "bold"), f": {plain(room.obstacle)}", indent=INDENT)
        if room.waits is not None:
            yield Padding(headline(room.waits), (0, 0, 0, 2 * INDENT))
    yield from _rest(len(rooms) - MOST_ROOMS, "-o json has them all")


def _notes(report: DefragReport) -> Iterator[RenderableType]:
    cost = report.cost
    if cost.pods:
        gangs = f", and {counted(cost.gangs, 'gang')} disturbed" if cost.gangs else ""
        lost = span(cost.lost_device_seconds)
        yield section("what it costs", "")
        moved = counted(cost.pods, "pod")
        yield prose(f"{moved} moved{gangs}; {lost} of device time lost", indent=INDENT)
    if report.staying and not report.fits:
        yield section("what stays", "pods with devices that are not moved")
        for why, number in sorted(report.staying.items(), key=lambda item: -item[1]):
            yield prose(f"{number:,}: {why}", indent=INDENT)
    if report.unseen:
        yield unseen(report.unseen)


def _rest(number: int, where: str) -> Iterator[RenderableType]:
    if number > 0:
        yield prose((f"and {number:,} more; {where}", "dim"), indent=INDENT)


def _place(place: Place) -> str:
    node = plain(place.node)
    return f"{node}: {devices_listed(place.devices, place.node)}" if place.devices else node


def _full_name(pod: MovedPod | SeatedPod) -> str:
    return pod.name if pod.namespace == "default" else f"{pod.namespace}/{pod.name}"
