"""Attributes and capacities that a selector asks for and devices do not have.

In the language, a misspelt name is not an error where it is tested with `has` or `.?`, and a bare "no such key" elsewhere. It helps to know
how many of the devices have the name, and which names are similar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

from msgspec import Struct

from drayman.api.resource import Device
from drayman.cel.device_values import split_name
from drayman.cel.reads import Group, QualifiedKey, Reads

Kind: TypeAlias = Literal["attribute", "capacity"]

_ALIKE = 0.6  # of SequenceMatcher.ratio
_SUGGESTIONS = 3


class Suggestion(Struct, frozen=True):
    """A name that exists, and on how many devices."""

    domain: str
    name: str
    devices: int
    kind: Kind


class MissingName(Struct, frozen=True):
    """A name that a selector reads and that not all devices have."""

    kind: Kind
    domain: str
    name: str
    devices: int  # that have it
    of: int
    suggestions: tuple[Suggestion, ...] = ()

    def __str__(self) -> str:
        text = f"`{self.name}` is on {self.devices} of {self.of} devices"
        if self.suggestions:
            names = " or ".join(f"`{self._shown(s)}`" for s in self.suggestions)
            text += f"; did you mean {names}?"
        return text

    def _shown(self, suggestion: Suggestion) -> str:
        """The name, with its domain and kind where they differ."""
        text = suggestion.name
        if suggestion.domain != self.domain:
            text = f"{suggestion.domain}/{text}"
        if suggestion.kind != self.kind:
            text = f"{suggestion.kind} {text}"
        return text


def missing_names(
    reads: Reads, devices: Iterable[tuple[str, Device]], *, at_most: float = 0.0
) -> tuple[MissingName, ...]:
    """The names that at most this share of the devices (driver, device) have; by default those that none has."""
    tried = list(devices)
    present: dict[Kind, Counter[QualifiedKey]] = {"attribute": Counter(), "capacity": Counter()}
    for driver, device in tried:
        present["attribute"].update({split_name(name, driver) for name in device.attributes})
        present["capacity"].update({split_name(name, driver) for name in device.capacity})
    wanted: list[tuple[Kind, Group]] = [
        ("attribute", reads.attributes),
        ("capacity", reads.capacity),
    ]
    return tuple(
        MissingName(kind, *key, present[kind][key], len(tried), _suggestions(kind, key, present))
        for kind, group in wanted
        for key in sorted(group.keys)
        if present[kind][key] <= at_most * len(tried)
    )


def _suggestions(
    kind: Kind, key: QualifiedKey, present: dict[Kind, Counter[QualifiedKey]]
) -> tuple[Suggestion, ...]:
    scored = sorted(_candidates(kind, key, present), key=lambda pair: -pair[0])
    return tuple(suggestion for _, suggestion in scored[:_SUGGESTIONS])


def _candidates(
    kind: Kind, key: QualifiedKey, present: dict[Kind, Counter[QualifiedKey]]
) -> Iterator[tuple[float, Suggestion]]:
    """Names similar to the wanted one: spelt similarly in its domain, or the same in another domain or of the other kind."""
    domain, name = key
    for found_kind, counter in present.items():
        for (other_domain, other), count in sorted(counter.items()):
            score = SequenceMatcher(None, name.lower(), other.lower(), autojunk=False).ratio()
            same_place = found_kind == kind and other_domain == domain
            if (other_domain, other) == key and found_kind == kind:
                continue
            if score >= _ALIKE and (same_place or score == 1.0):
                place = (found_kind == kind) + (other_domain == domain)
                yield score + place / 100, Suggestion(other_domain, other, count, found_kind)
