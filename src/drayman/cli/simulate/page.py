"""The report of a replayed trace as one HTML file: tables, and plots as SVG in the page. It loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from statistics import fmean
from typing import Final

from drayman.cli.prices import money
from drayman.cli.simulate.drawing import percent, seconds
from drayman.cli.simulate.plots import Bar, Line, bars, lines
from drayman.questions.trace import RECORDED
from drayman.simulate.trace.report import CurvePoint, PolicySummary, Replay, TraceReport
from drayman.simulate.trace.rooms import CAUSES

_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1d2733; background: #fff;
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; border-bottom: 1px solid #dde3ea; padding-bottom: .2rem; }
h3 { font-size: 1rem; font-weight: 600; margin: 1.2rem 0 .2rem; }
p { margin: .3rem 0; color: #4a5664; }
table { border-collapse: collapse; margin: .6rem 0; }
th, td { padding: .2rem .8rem .2rem 0; text-align: right; font-variant-numeric: tabular-nums; }
th { font-weight: 600; border-bottom: 1px solid #c9d2dc; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
svg { max-width: 100%; height: auto; display: block; }
"""
COLOURS: Final[Mapping[str, str]] = {
    "best": "#1b6ca8",
    "best-fit": "#2f9e62",
    "first-fit": "#d9822b",
    "random": "#8a8f98",
}
_OF_CAUSES: Final = ("#7b5ea7", "#d9822b", "#c9b23b", "#c2504f", "#4f8fc2", "#9aa4ae")


def page_of(found: TraceReport) -> str:
    """The whole page."""
    return "".join(_parts(found))


def _parts(found: TraceReport) -> Iterator[str]:
    yield "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
    yield f"<title>Placement on {escape(found.trace)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
    yield "<h1>Placement quality</h1>\n"
    yield f"<p>{escape(_about(found))}</p>\n"
    yield _table(found.summaries)
    for workload in dict.fromkeys(each.workload for each in found.summaries):
        yield from _workload(found, workload)
    yield "</body>\n</html>\n"


def _about(found: TraceReport) -> str:
    size = f"Trace {found.trace}: {found.nodes:,} nodes with {found.gpus:,} GPUs."
    if found.arrivals == RECORDED:
        return f"{size} Tasks come and go as recorded; they ask for up to {found.load:.0%} of the GPUs at a time."
    return f"{size} Random tasks are submitted until they have asked for {found.load:.0%} of the GPUs; one that does not fit is dropped."


def _workload(found: TraceReport, workload: str) -> Iterator[str]:
    replays = [each for each in found.replays if each.workload == workload]
    summaries = [each for each in found.summaries if each.workload == workload]
    is_recorded = found.arrivals == RECORDED
    scale = 86_400.0 if is_recorded else 0.01
    across = "days" if is_recorded else "GPUs asked for, % of all"

    def plot(title: str, value: Callable[[CurvePoint], float | None], unit: str) -> str:
        drawn = [_curve(replays, each.policy, scale, value) for each in summaries]
        return f"<h3>{escape(title)}</h3>\n{lines([each for each in drawn if each.points], across, unit)}\n"

    yield f"<h2>Workload {escape(workload)}</h2>\n"
    yield plot("Allocated GPUs", lambda point: 100 * point.allocated, "% of all")
    yield plot("Free GPUs that the mean task cannot use", lambda p: 100 * p.fragmented, "% of all")
    if is_recorded:
        yield plot("Tasks that wait", lambda point: point.waiting, "tasks")
    if any(point.cost_per_hour is not None for each in replays for point in each.curve):
        yield plot("Cost of the nodes in use", lambda point: point.cost_per_hour, "per hour")
    if not is_recorded:
        yield "<h3>What is not allocated when the last task has come, by what keeps the mean task from it</h3>\n"
        yield bars([_bar(each) for each in summaries], "% of all GPUs")


def _curve(
    replays: Iterable[Replay],
    policy: str,
    scale: float,
    value: Callable[[CurvePoint], float | None],
) -> Line:
    """The mean over all seeds: the points of each are at about the same loads."""
    curves = [each.curve for each in replays if each.policy == policy]
    points: list[tuple[float, float]] = []
    for step in zip(*curves, strict=False):
        values = [known for point in step if (known := value(point)) is not None]
        if values:
            points.append((fmean(point.at for point in step) / scale, fmean(values)))
    return Line(policy, COLOURS.get(policy, "#444"), tuple(points))


def _bar(summary: PolicySummary) -> Bar:
    parts = zip(CAUSES.items(), _OF_CAUSES, strict=True)
    return Bar(
        summary.policy,
        tuple((text, colour, 100 * summary.lost[cause]) for (cause, text), colour in parts),
    )


def _table(summaries: Sequence[PolicySummary]) -> str:
    titles = [
        "Workload",
        "Policy",
        "Seeds",
        "Allocated",
        "Lowest",
        "Highest",
        "Fragmented",
        "Placed",
    ]
    extra: list[tuple[str, Callable[[PolicySummary], str]]] = [
        ("Aligned", lambda each: percent(each.aligned)),
        ("Mean wait", lambda each: seconds(each.waiting_mean)),
        ("95 % wait", lambda each: seconds(each.waiting_p95)),
        ("Cost per hour", lambda each: _money(each.cost_per_hour)),
        ("per GPU-hour", lambda each: _money(each.cost_per_gpu_hour)),
    ]
    shown = [(title, cell) for title, cell in extra if any(cell(each) != "-" for each in summaries)]
    rows = [[*titles, *(title for title, _ in shown)]]
    for each in summaries:
        shares = (each.allocated, each.lowest, each.highest, each.fragmented, each.placed)
        rows.append(
            [
                each.workload,
                each.policy,
                str(each.seeds),
                *(percent(share) for share in shares),
                *(cell(each) for _, cell in shown),
            ]
        )
    head, *body = (
        "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
        for tag, row in zip(["th", *["td"] * len(summaries)], rows, strict=True)
    )
    lines_ = "".join(f"<tr>{row}</tr>\n" for row in body)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{lines_}</tbody>\n</table>\n"


def _money(amount: float | None) -> str:
    return "-" if amount is None else money(amount)
