"""What the rules about other pods ask of the index of placed pods."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Protocol

from drayman.placement.fit.needs import PodNeeds
from drayman.placement.fit.tally import Tally

DomainCounts = dict[str, int]
"""Counts by domain of a topology. Domains without any have no entry."""


class Neighbours(Protocol):
    """The placed pods, as the rules see them."""

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace; none if it is not known."""
        ...

    def repelling(self, needs: PodNeeds) -> list[tuple[str, DomainCounts]]:
        """The required anti-affinity of placed pods that applies to this pod: topology key and domains."""
        ...

    def attracting(self, needs: PodNeeds) -> list[tuple[int, str, DomainCounts]]:
        """The preferences of placed pods that apply to this pod: weight, topology key and how many there are in each domain."""
        ...

    def tally(self, key: Hashable, make: Callable[[], Tally]) -> Tally:
        """A tally that is kept up to date, made if it is not there yet."""
        ...

    def wanted_near(self, key: Hashable, make: Callable[[], Tally]) -> Tally:
        """The same for pods that a pod must be near. They stay where nothing is supposed to be in use."""
        ...
