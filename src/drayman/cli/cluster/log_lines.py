"""The lines of an instance's log: when, which component, how important, and what.

    2026-01-02T03:04:05Z scheduler info pod default/train on dgx-h100-0

Whatever else is in the file, such as a traceback, belongs to the line before it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Set
from typing import Final

from drayman.cli.output import PrintableFormatter

COMPONENTS: Final = ("scheduler", "controllers", "queues", "nodes", "server")
OTHER: Final = "server"
"""Who is meant by a line that names nobody."""
_PACKAGES: Final = (
    ("drayman.scheduler", "scheduler"),
    ("drayman.controllers.quota", "queues"),
    ("drayman.controllers.multikueue", "queues"),
    ("drayman.controllers", "controllers"),
    ("drayman.node", "nodes"),
    ("drayman.drivers", "nodes"),
    ("drayman.plugins", "nodes"),
)
_LINE: Final = re.compile(rf"\S+Z ({'|'.join(COMPONENTS)}) (?:debug|info|warning|error|critical) ")


def component_of(logger: str) -> str:
    """Whose messages a logger has."""
    for package, component in _PACKAGES:
        if logger == package or logger.startswith(f"{package}."):
            return component
    return OTHER


class LineFormatter(PrintableFormatter):
    """Writes lines that a `Chooser` can tell apart."""

    def __init__(self) -> None:
        super().__init__(datefmt="%Y-%m-%dT%H:%M:%SZ")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        when = self.formatTime(record, self.datefmt)
        level = record.levelname.lower()
        return f"{when} {component_of(record.name)} {level} {record.getMessage()}"


class Chooser:
    """Chooses the lines of some components, or all if none is named. A line without a name is of the component that was last."""

    def __init__(self, wanted: Set[str]) -> None:
        self._wanted = wanted
        self._last = OTHER

    def wants(self, line: str) -> bool:
        found = _LINE.match(line)
        if found is not None:
            self._last = found[1]
        return not self._wanted or self._last in self._wanted
