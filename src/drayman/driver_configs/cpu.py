"""What `dra.cpu` takes: which CPUs a claim is to have. It has an apiVersion and no kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from drayman.api.struct import ApiStruct, always
from drayman.driver_configs.decoding import Config

_RANGE: Final = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", re.ASCII)
_MOST: Final = 8192
"""CPUs of the largest machines that Linux supports."""
CPUSET_VARIABLE: Final = "DRA_CPUSET_"
"""How the variables begin that tell a container, and its node, which CPUs it has. The uid of the claim follows."""


class Cpus(ApiStruct):
    cpuset: str = ""


class CpuConfig(Config):
    api_version: str = always("v1alpha1")
    cpu_config: Cpus | None = None

    def problems(self) -> Iterable[str]:
        if self.cpu_config is None or not self.cpu_config.cpuset:
            yield "cpuConfig.cpuset: required"
            return
        try:
            parse_cpus(self.cpu_config.cpuset)
        except ValueError as error:
            yield f"cpuConfig.cpuset: {error}"

    @property
    def chosen(self) -> tuple[int, ...]:
        """The CPUs that it names; none for the default."""
        return parse_cpus(self.cpu_config.cpuset) if self.cpu_config is not None else ()


def parse_cpus(text: str) -> tuple[int, ...]:
    """The numbers in a list as Linux writes it, `0-3,8`, in order. Raises ValueError."""
    found: set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part!r} is neither a CPU nor a range of them, such as 0-3")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < _MOST:
            raise ValueError(f"{part!r} is no range of CPUs")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def format_cpus(cpus: Iterable[int]) -> str:
    """Numbers as a list that Linux reads: `0-3,8`."""
    ranges: list[tuple[int, int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1] = (ranges[-1][0], cpu)
        else:
            ranges.append((cpu, cpu))
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)
