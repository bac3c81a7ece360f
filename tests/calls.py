"""How much Python code runs in this thread: a measure of work that does not depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any


@dataclass
class Calls:
    """How many functions were called."""

    count: int = 0


@contextmanager
def counted_calls() -> Iterator[Calls]:
    """Count the calls of functions in this thread, also those of other tasks of its event loop."""
    found = Calls()

    def note(_frame: FrameType, event: str, _value: Any) -> None:
        found.count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)
