"""Building blocks for drawing an explanation.

Names and selectors come from the cluster, so they are never read as markup, and control characters in them are spelt out. Only the named
colours of the terminal are used, and none that vanishes on a dark or a light background.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from drayman.api.times import seconds_of
from drayman.printable import printable

AS_SEEN: Final = ", as far as you may see"
"""Follows an answer that might differ with what is hidden from the user."""
INDENT: Final = 2
WIDEST_PROSE: Final = 120
"""Sentences over the whole width of a large screen are hard to read."""
MOST_NAMES: Final = 12
"""Names that are listed before the rest is only counted."""

_WORD: Final = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""")
_JSON_PART: Final = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|[^",])+,?|,""")
_INSIDE: Final = r"""(?:'[^']*'|"[^"]*"|[^.(\[])"""
_PART: Final = re.compile(rf"[.(\[]{_INSIDE}*|{_INSIDE}+")
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def plain(text: str) -> str:
    """As one line that does not control the terminal."""
    return printable(re.sub(r"\s+", " ", text).strip())


@dataclass(frozen=True, slots=True)
class Trimmed:
    """Something drawn without trailing blanks, which show where text is copied or piped."""

    content: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # Not `render_lines`, which cuts lines that are longer than the terminal: what is in them is to be copied.
        for line in Segment.split_lines(console.render(self.content, options)):
            while line and not line[-1].text.strip():
                line.pop()
            if line:
                last = line.pop()
                line.append(Segment(last.text.rstrip(), last.style, last.control))
            yield from line
            yield Segment.line()


def prose(*parts: str | tuple[str, str], indent: int = 0, mark: str = "") -> RenderableType:
    """Words, each part with its own style, wrapped and indented; all to the right of the mark."""
    text = Text()
    for part in parts:
        words, style = part if isinstance(part, tuple) else (part, "")
        text.append(printable(words), style)
    marked: RenderableType = text
    if mark:
        marked = Table.grid(padding=0)
        marked.add_column(no_wrap=True, style="green")
        marked.add_column(overflow="fold")
        marked.add_row(f"{mark} ", text)
    return Constrain(Padding(marked, (0, 0, 0, indent)), WIDEST_PROSE)


def section(title: str, note: str, *content: RenderableType) -> RenderableType:
    """A heading with its content, and an empty line before."""
    return Group("", prose((title, "bold"), (f" ({note})" if note else "", "dim")), *content)


def listed(names: Sequence[str]) -> str:
    """Names in a row; if there are many, only the first."""
    shown = [plain(name) for name in names[:MOST_NAMES]]
    rest = len(names) - len(shown)
    return ", ".join([*shown, f"and {rest:,} more"] if rest > 0 else shown)


def devices_listed(devices: Sequence[str], node: str = "", between: str = "; ") -> str:
    """Devices in a row. Driver and pool are given once for devices that share them; other pools come after `between`.

    On a node that is already named, devices of its own pools are listed by name alone, unless two drivers use the same name.
    """
    names = Counter(device.rpartition("/")[2] for device in devices)
    pools: dict[str, list[str]] = {}
    for device in devices[:MOST_NAMES]:
        pool, _, name = device.rpartition("/")
        if node and pool.endswith(f"/{node}") and names[name] == 1:
            pool = ""
        pools.setdefault(plain(pool), []).append(plain(name))
    rows = [", ".join(each) + (f" of {pool}" if pool else "") for pool, each in pools.items()]
    rest = len(devices) - MOST_NAMES
    return between.join(rows) + (f" and {rest:,} more" if rest > 0 else "")


def broken(expression: str, room: int) -> str:
    """An expression over several lines: broken at blanks, and within words that are too long where their parts begin."""
    lines = [""]
    for word in expression.split():
        for number, part in enumerate(_PART.findall(word) if len(word) > room else [word]):
            gap = " " if number == 0 and lines[-1] else ""
            if lines[-1] and len(lines[-1]) + len(gap) + len(part) > room:
                lines.append(part)
            else:
                lines[-1] += gap + part
    return "\n".join(lines)


def age(since: str, now: float) -> str:
    """How long ago, in the two largest units: `3h12m`. Empty where it is not known."""
    return span(now - seconds_of(since)) if since else ""


def span(seconds: float) -> str:
    """A time in the two largest units: `3h12m`."""
    seconds = max(0, int(seconds))
    parts: list[str] = []
    for unit, size in _UNITS:
        amount, seconds = divmod(seconds, size)
        if amount or parts or unit == "s":
            parts.append(f"{amount}{unit}" if amount or not parts else "")
    return "".join(parts[:2])


def shell(command: str, indent: int, width: int) -> Iterator[Text]:
    """A command over as many lines as it needs, so that it can be copied unchanged.

    It is broken between words, and within JSON after commas, where blanks mean nothing. What is still too long stays whole, and the
    terminal shows it on several lines.
    """
    room = max(width - indent - 2, 1)
    lines: list[str] = []
    for word in _words(command):
        first, *rest = _pieces(word, room - 2)
        if lines and not rest and len(lines[-1]) + 1 + len(first) <= room:
            lines[-1] += f" {first}"
        elif lines:
            lines[-1] += " \\"
            lines.append(f"  {first}")
        else:
            lines.append(first)
        lines += [f"   {piece}" for piece in rest]
    for line in lines:
        yield Text(f"{' ' * indent}{printable(line)}", "cyan", no_wrap=True, overflow="ignore")


def _pieces(word: str, room: int) -> list[str]:
    """A word in one piece, or, if it is JSON in quotes and too long, in several."""
    if len(word) <= room or not _is_json(word):
        return [word]
    pieces = [""]
    for part in _JSON_PART.findall(word):
        if pieces[-1] and len(pieces[-1]) + len(part) > room:
            pieces.append("")
        pieces[-1] += part
    return pieces


def _is_json(word: str) -> bool:
    if word[:1] != "'" or word[-1:] != "'" or "'" in word[1:-1]:
        return False
    try:
        json.loads(word[1:-1])
    except ValueError:
        return False
    return True


def _words(command: str) -> list[str]:
    """The words of a command line as they are written, with their quotes."""
    found = _WORD.findall(command)
    # Unclosed quotes: better one long line than a wrong one.
    return found if " ".join(found) == command else [command]
