"""Which pod of a set goes to which domain of a topology: those with a number by that, others as they come.

The assignment of a Workload says how many pods go to each domain. A pod is told by its node selector, when its gate is removed. Once some
were told otherwise than by their number, because a node was replaced, the others go where there are places left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Domain = tuple[str, ...]
"""The values of the levels that identify a domain."""


@dataclass(frozen=True, slots=True)
class Sitter:
    """A pod of a set."""

    name: str
    index: int | None
    """Its number within the set, if it has one."""
    selector: Mapping[str, str]
    """What it selects of nodes."""
    is_held: bool
    """Whether it has not been told where to go."""


def seats(
    levels: Sequence[str], domains: Sequence[tuple[Domain, int]], pods: Sequence[Sitter]
) -> dict[str, dict[str, str]]:
    """The node selectors of pods that are held, by name. Those for whom there is no place stay held."""
    flat = [domain for domain, count in domains for _ in range(count)]
    numbers = [pod.index for pod in pods]
    held = [pod for pod in pods if pod.is_held]
    is_numbered = len(set(numbers)) == len(numbers) and all(
        number is not None and 0 <= number < len(flat) for number in numbers
    )
    if is_numbered and all(_is_in(pod, levels, flat) for pod in pods if not pod.is_held):
        return {
            pod.name: _selector(levels, flat[pod.index]) for pod in held if pod.index is not None
        }
    free = Counter(dict(domains))
    free.subtract(
        tuple(pod.selector.get(level, "") for level in levels) for pod in pods if not pod.is_held
    )
    found = {}
    places = [domain for domain, _ in domains for _ in range(max(0, free[domain]))]
    in_order = sorted(held, key=lambda each: (each.index or 0, each.name))
    for pod, domain in zip(in_order, places, strict=False):
        found[pod.name] = _selector(levels, domain)
    return found


def _is_in(pod: Sitter, levels: Sequence[str], flat: Sequence[Domain]) -> bool:
    """Whether a pod was told the domain that its number stands for."""
    told = tuple(pod.selector.get(level, "") for level in levels)
    return pod.index is not None and told == flat[pod.index]


def _selector(levels: Sequence[str], domain: Domain) -> dict[str, str]:
    return dict(zip(levels, domain, strict=True))
