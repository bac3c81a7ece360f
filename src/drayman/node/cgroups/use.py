"""What the processes of a group have used, as the kernel counts it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from drayman.node.cgroups.layout import Group

_NANO: Final = 1_000_000_000
_MICRO: Final = 1_000_000


def cpu_seconds(groups: Iterable[Group]) -> float | None:
    """None where nobody counts. Raises OSError if the groups are gone."""
    for folder in _folders(groups):
        if (folder / "cpuacct.usage").exists():
            return int((folder / "cpuacct.usage").read_text()) / _NANO
        if (folder / "cpu.stat").exists():
            spent = _fields((folder / "cpu.stat").read_text()).get("usage_usec")
            if spent is not None:  # version 1 has such a file that says other things
                return spent / _MICRO
    return None


def working_set(groups: Iterable[Group]) -> int | None:
    """Memory without files that are kept only because there is room; None where nobody counts. Raises OSError if the groups are gone."""
    for folder in _folders(groups):
        for total, idle in (
            ("memory.current", "inactive_file"),
            ("memory.usage_in_bytes", "total_inactive_file"),
        ):
            if (folder / total).exists():
                kept = _fields((folder / "memory.stat").read_text()).get(idle, 0)
                return max(0, int((folder / total).read_text()) - kept)
    return None


def _folders(groups: Iterable[Group]) -> list[Path]:
    return [Path(group.path) for group in groups if group.holds]


def _fields(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}
