"""Text that shows what it is: nothing in it controls a terminal, hides, or changes the direction in which it is read.

Names, annotations, messages, expressions and file names are chosen by others. What Python does not call printable (control characters,
those that embed or override a direction, separators, unassigned ones) is spelt out: by an escape for people to read, and in JSON and
YAML by the escapes of the language, so that a document stays the same document.
"""

from __future__ import annotations

import re
from typing import Any, Final

_DOUBTFUL: Final = re.compile(r"[^\n -~]")
"""What may not be printable. Nearly all text has none of it."""
_DOUBTFUL_IN_JSON: Final = re.compile(r"[^\x00-~]")
"""The same in JSON, whose strings have no ASCII control characters but the last one."""


def printable(text: str) -> str:
    """For people: control characters and the like are spelt out, ends of lines stay."""
    return _DOUBTFUL.sub(_spelt_out, text)


def printable_json(text: str) -> str:
    """The same JSON: such characters occur in it only within strings, where they can be escaped."""
    return text if text.isascii() and "\x7f" not in text else _DOUBTFUL_IN_JSON.sub(_escaped, text)


def printable_yaml(value: Any) -> str:
    """A value as YAML with one field a line. Letters of all languages stay as they are, unless a string of it must be escaped."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True)
    if printable(text) != text:
        text = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=False)
    return text


def _spelt_out(match: re.Match[str]) -> str:
    found = match[0]
    return found if found.isprintable() else ascii(found)[1:-1]


def _escaped(match: re.Match[str]) -> str:
    found = match[0]
    if found.isprintable():
        return found
    units = found.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
