"""Plots as SVG text: lines over a common axis, and stacked bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Final

_WIDTH: Final = 860
_HEIGHT: Final = 320
_LEFT: Final = 58
_RIGHT: Final = 120
_TOP: Final = 12
_BOTTOM: Final = 44
_ROW: Final = 34
_STEPS: Final = (1, 2, 2.5, 5, 10)
_INK: Final = "#4a5664"
_GRID: Final = "#e4e9ef"
_LABEL_HEIGHT: Final = 16


@dataclass(frozen=True, slots=True)
class Line:
    """A curve with a name."""

    name: str
    colour: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of parts: name, colour and size of each."""

    name: str
    parts: tuple[tuple[str, str, float], ...]


def lines(curves: Sequence[Line], across: str, unit: str) -> str:
    """Curves from zero up, each named at its end."""
    points = [point for curve in curves for point in curve.points]
    if not points:
        return "<p>Nothing to show.</p>"
    wide = _Axis(max(x for x, _ in points), _WIDTH - _LEFT - _RIGHT)
    high = _Axis(max(y for _, y in points), _HEIGHT - _TOP - _BOTTOM)
    return _svg(_HEIGHT, "".join(_plot(curves, wide, high, across, unit)))


def _plot(
    curves: Sequence[Line], wide: _Axis, high: _Axis, across: str, unit: str
) -> Iterator[str]:
    floor_ = _HEIGHT - _BOTTOM
    for tick in high.ticks:
        y = floor_ - high.at(tick)
        yield _stroke(_LEFT, y, _WIDTH - _RIGHT, y)
        yield _text(_LEFT - 8, y + 4, high.label(tick), "end")
    for tick in wide.ticks:
        yield _text(_LEFT + wide.at(tick), floor_ + 18, wide.label(tick), "middle")
    yield _text(_LEFT + wide.length / 2, _HEIGHT - 6, across, "middle")
    yield (
        f"<text transform='translate(14 {_TOP + high.length / 2:.0f}) rotate(-90)'"
        f" text-anchor='middle'>{escape(unit)}</text>"
    )
    ends: list[tuple[float, Line]] = []
    for curve in curves:
        placed = [(_LEFT + wide.at(x), floor_ - high.at(y)) for x, y in curve.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        yield (
            f"<polyline points='{path}' fill='none' stroke='{curve.colour}' stroke-width='2'"
            f" stroke-linejoin='round'><title>{escape(curve.name)}</title></polyline>"
        )
        ends.append((placed[-1][1], curve))
    for y, curve in _apart(ends):
        yield _text(_WIDTH - _RIGHT + 8, y + 4, curve.name, "start", curve.colour)


def _apart(ends: list[tuple[float, Line]]) -> Iterator[tuple[float, Line]]:
    """Labels from top to bottom, moved so that none covers another."""
    above = float("-inf")
    ordered = sorted(ends, key=lambda end: end[0])
    spare = _HEIGHT - _BOTTOM - _LABEL_HEIGHT * len(ordered)
    for number, (y, line) in enumerate(ordered):
        above = max(min(y, spare + _LABEL_HEIGHT * (number + 1)), above + _LABEL_HEIGHT)
        yield above, line


def bars(rows: Sequence[Bar], unit: str) -> str:
    """Stacked bars below each other, with a legend of their parts."""
    most = max((sum(size for _, _, size in row.parts) for row in rows), default=0.0)
    legend = [(name, colour) for name, colour, _ in rows[0].parts] if rows else []
    wide = _Axis(most, _WIDTH - _LEFT - _RIGHT - 30)
    bottom = _TOP + _ROW * len(rows)
    height = bottom + 48 + 20 * len(legend)
    return _svg(height, "".join(_stacked(rows, wide, bottom, legend, unit)))


def _stacked(
    rows: Sequence[Bar],
    wide: _Axis,
    bottom: int,
    legend: Sequence[tuple[str, str]],
    unit: str,
) -> Iterator[str]:
    left = _LEFT + 30
    for tick in wide.ticks:
        yield _stroke(left + wide.at(tick), _TOP, left + wide.at(tick), bottom)
        yield _text(left + wide.at(tick), bottom + 16, wide.label(tick), "middle")
    yield _text(left + wide.length / 2, bottom + 34, unit, "middle")
    for number, row in enumerate(rows):
        top = _TOP + number * _ROW + 6
        yield _text(left - 8, top + 15, row.name, "end")
        x = float(left)
        for name, colour, size in row.parts:
            length = wide.at(size)
            title = escape(f"{name}: {size:.2f}")
            yield (
                f"<rect x='{x:.1f}' y='{top}' width='{length:.1f}' height='{_ROW - 12}'"
                f" fill='{colour}'><title>{title}</title></rect>"
            )
            x += length
        total = sum(size for _, _, size in row.parts)
        yield _text(x + 6, top + 15, f"{total:.2f}", "start")
    for number, (name, colour) in enumerate(legend):
        y = bottom + 48 + 20 * number
        yield f"<rect x='{left}' y='{y}' width='12' height='12' fill='{colour}'/>"
        yield _text(left + 20, y + 11, name, "start")


class _Axis:
    """From zero to a round number."""

    def __init__(self, most: float, length: float) -> None:
        self.length = length
        step = _round_step(most / 5) if most > 0 else 1.0
        self.end = step * max(1, ceil(most / step - 1e-9))
        self.ticks = [step * number for number in range(round(self.end / step) + 1)]
        self._digits = max(0, -floor(log10(step))) if step < 1 else int(step % 1 > 0)

    def at(self, value: float) -> float:
        return value / self.end * self.length

    def label(self, value: float) -> str:
        return f"{value:,.{self._digits}f}"


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 2.5 and 5, times a power of ten, that is not less."""
    power = 10.0 ** floor(log10(least))
    return float(next(step * power for step in _STEPS if step * power >= least * (1 - 1e-9)))


def _svg(height: int, inner: str) -> str:
    return (
        f"<svg viewBox='0 0 {_WIDTH} {height}' width='{_WIDTH}' height='{height}' role='img'"
        f" font-size='12' font-family='system-ui, sans-serif' fill='{_INK}'>{inner}</svg>"
    )


def _text(x: float, y: float, text: str, anchor: str, colour: str = "") -> str:
    fill = f" fill='{colour}' font-weight='600'" if colour else ""
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'{fill}>{escape(text)}</text>"


def _stroke(x1: float, y1: float, x2: float, y2: float) -> str:
    return f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{_GRID}'/>"
