"""A plan as text for people: the answer first, then what would wait and why, then which pod goes where."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table

from drayman.cli.explain.drawing import headline, refused, unseen
from drayman.cli.explain.layout import AS_SEEN, INDENT, Trimmed, plain, prose, section
from drayman.cli.explain.queue import charges
from drayman.cli.prices import money
from drayman.explain.hidden import hides_use
from drayman.explain.queues.wording import ahead_of
from drayman.questions.plan import PlanAnswer
from drayman.questions.queues.planned import PlannedQueued
from drayman.reasons.reason import Reason
from drayman.reasons.wording import and_list, counted
from drayman.simulate.plan_report import (
    PlannedCost,
    PlannedDevice,
    PlannedPod,
    PlannedWorkload,
)

MOST_PODS: Final = 40
MOST_REASONS: Final = 12
_NAME: Final = 30


@dataclass(frozen=True, slots=True)
class PlanDrawing:
    """A plan, drawn for any width."""

    report: PlanAnswer
    all_pods: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Trimmed(Group(*self._parts(options.max_width)))

    def _parts(self, width: int) -> Iterator[RenderableType]:
        report = self.report
        yield _answer(report)
        if report.queued:
            yield section("quota", "", *(line for each in report.queued for line in _quota(each)))
        waiting = [pod for pod in report.pods if pod.waits is not None]
        if waiting:
            yield section("what would wait", "", *_reasons(waiting))
        placed = [pod for pod in report.pods if pod.waits is None]
        configs = dict.fromkeys(text for pod in report.pods for text in pod.kept_from_starting)
        if configs:
            yield refused(list(configs)[:MOST_REASONS])
        if placed:
            most = len(placed) if self.all_pods else MOST_PODS
            yield section("where the others would go" if waiting else "where pods would go", "")
            yield _places(placed[:most], width)
            if len(placed) > most:
                said = f"and {len(placed) - most:,} more; --all lists them"
                yield prose((said, "dim"), indent=INDENT)
        if report.cost is not None:
            yield from _cost(report.cost, report.workloads)
        yield from _notes(report)


def _answer(report: PlanAnswer) -> RenderableType:
    total, waiting = len(report.pods), sum(pod.waits is not None for pod in report.pods)
    if not total:
        return prose("There are no pods to place.")
    style = "bold red" if waiting else "bold green"
    said = f"{total - waiting:,} of {counted(total, 'pod')} would run"
    seen = AS_SEEN if hides_use(report.unseen) else ""
    if report.copies > 1:
        lead = f"{report.copies_fitting:,} of {report.copies:,} copies fit"
        return prose((lead, style), f"{seen}: {said}.")
    stuck = sum(bool(pod.kept_from_starting) for pod in report.pods if pod.waits is None)
    if not waiting and stuck:
        said = f"{stuck:,} of {counted(total, 'pod')} would get devices and not start"
        return prose(("Fits, but does not start", "bold red"), f"{seen}: {said}.")
    if not waiting:
        said = f"all {total:,} pods would run" if total > 1 else "the pod would run"
        return prose(("Fits", style), f"{seen}: {said}.")
    return prose(("Does not fit", style), f": {said}.")


def _quota(found: PlannedQueued) -> Iterator[RenderableType]:
    """Whether something would be admitted, with what, or behind whom it would wait."""
    name = found.name if found.namespace == "default" else f"{found.namespace}/{found.name}"
    more = f" and {found.count - 1:,} more like it" if found.count > 1 else ""
    place = found.place
    yield prose((plain(name), "bold"), more, indent=INDENT)
    if found.headline.reason.kind is None:
        charged = and_list(charges(place.charges), most=8)
        verb = "is" if found.headline.reason is Reason.RUNS else "would be"
        text = (
            f"{verb} admitted by ClusterQueue {place.cluster_queue}, charged {charged or 'nothing'}"
        )
        yield prose(("Admitted", "bold green"), f": it {plain(text)}.", indent=2 * INDENT)
        return
    yield Padding(headline(found.headline), (0, 0, 0, 2 * INDENT))
    if place.position is not None:
        text = ahead_of(place.position, place.waiting, place.cluster_queue, place.ahead)
        yield prose(("It would be ", "dim"), (f"{plain(text)}.", "dim"), indent=2 * INDENT)
    if found.estimate is not None:
        text = plain(found.estimate.sentence)
        lead = "" if text.startswith("No start") else "Estimated start: "
        yield prose((f"{lead}{text}", "dim"), indent=2 * INDENT)


def _reasons(waiting: Sequence[PlannedPod]) -> Iterator[RenderableType]:
    """Pods of one workload that wait for the same reason, grouped; the largest groups first."""
    alike: dict[Hashable, list[PlannedPod]] = {}
    for pod in waiting:
        alike.setdefault(_reason_key(pod), []).append(pod)
    groups = sorted(alike.values(), key=len, reverse=True)
    for pods in groups[:MOST_REASONS]:
        names = [plain(_full_name(pod)) for pod in pods]
        yield prose((and_list(names), "bold"), indent=INDENT)
        if (why := pods[0].waits) is not None:
            yield Padding(headline(why), (0, 0, 0, 2 * INDENT))
    if rest := groups[MOST_REASONS:]:
        said = f"and {counted(sum(map(len, rest)), 'pod')} for other reasons; -o json has them all"
        yield prose((said, "dim"), indent=INDENT)


def _reason_key(pod: PlannedPod) -> Hashable:
    # The sentences of pods that are alike differ in the names of the claims that are made for each.
    reason = None if pod.waits is None else pod.waits.reason
    kind, _, name = pod.workload.partition("/")
    return pod.namespace, kind, "" if kind == "pod" else name, reason


def _places(pods: Sequence[PlannedPod], width: int) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("pod", overflow="fold", max_width=max(_NAME, width // 3))
    table.add_column("node", overflow="fold", max_width=max(_NAME // 2, width // 3))
    if any(pod.devices for pod in pods):
        table.add_column("devices", overflow="fold")
    for pod in pods:
        table.add_row(plain(_full_name(pod)), plain(pod.node), plain(_device_names(pod.devices)))
    return Padding(table, (0, 0, 0, INDENT))


def _cost(cost: PlannedCost, workloads: Sequence[PlannedWorkload]) -> Iterator[RenderableType]:
    """What it costs altogether, and by workload where there are several."""
    left_out = ""
    if cost.unpriced_pods:
        pods = counted(cost.unpriced_pods, "pod")
        left_out = f", without {pods} on nodes that have no price"
    yield section("what it would cost", "")
    yield prose(f"{money(cost.per_hour, cost.currency)} per hour{left_out}", indent=INDENT)
    totals: dict[tuple[str, str], float] = {}
    for each in workloads:  # copies have the same name
        if each.cost_per_hour is not None:
            key = (each.namespace, each.name)
            totals[key] = totals.get(key, 0.0) + each.cost_per_hour
    if len(totals) > 1:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("workload", overflow="fold")
        table.add_column("per hour", justify="right", no_wrap=True)
        for (namespace, name), total in sorted(totals.items(), key=lambda item: -item[1]):
            title = name if namespace == "default" else f"{namespace}/{name}"
            table.add_row(plain(title), money(total))
        yield Padding(table, (0, 0, 0, INDENT))


def _device_names(devices: Sequence[PlannedDevice]) -> str:
    """The devices by request, where there are several requests."""
    requests: dict[str, list[str]] = {}
    for device in devices:
        requests.setdefault(device.request, []).append(device.device)
    if len(requests) == 1:
        return ", ".join(next(iter(requests.values())))
    return "; ".join(f"{request}: {', '.join(names)}" for request, names in requests.items())


def _full_name(pod: PlannedPod) -> str:
    return pod.name if pod.namespace == "default" else f"{pod.namespace}/{pod.name}"


def _notes(report: PlanAnswer) -> Iterator[RenderableType]:
    for text in dict.fromkeys(map(_workload_note, report.workloads)):  # copies have the same
        if text:
            yield prose((text, "dim"))
    for fault in report.price_faults:
        yield prose((plain(f"{fault[:1].upper()}{fault[1:]}."), "dim"))
    for warning in report.warnings:
        yield prose(plain(warning))
    if report.ignored:
        yield prose((f"Not planned: {', '.join(map(plain, report.ignored))}", "dim"))
    if report.unseen:
        yield unseen(report.unseen)


def _workload_note(workload: PlannedWorkload) -> str:
    name = plain(workload.name)
    if not workload.pods:
        verb = "is not planned" if name.startswith("pod/") else "makes no pods"
        return f"{name} {verb}: {workload.note}."
    if workload.existing:
        return f"{name} has {counted(workload.existing, 'pod')} already, which stay where they are."
    return ""
