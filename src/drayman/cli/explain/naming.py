"""What is to be explained, as people name it: the ways of kubectl."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

_KINDS: Final = {
    "pod": ("pod", "pods", "po"),
    "resourceclaim": ("resourceclaim", "resourceclaims", "claim", "claims"),
    "job": ("job", "jobs"),
}
_GROUPS: Final = {"pod": "", "resourceclaim": "resource.k8s.io", "job": "batch"}
_NAMES: Final = {name: kind for kind, names in _KINDS.items() for name in names}


@dataclass(frozen=True, slots=True)
class Subject:
    """An object by kind and name. The kind is one of `pod`, `resourceclaim` and `job`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def parse_subject(words: Sequence[str]) -> Subject:
    """From `KIND/NAME` or `KIND NAME`. Raises UsageError."""
    if len(words) == 1 and "/" in words[0]:
        kind, _, name = words[0].partition("/")
    elif len(words) == 1 and words[0].lower() in _NAMES:
        raise click.UsageError(f"which {words[0]}? Name it: {words[0]}/NAME.")
    elif len(words) == 1:
        raise click.UsageError(f"what is {words[0]!r}? Say its kind too: pod/{words[0]}.")
    elif len(words) == 2 and "/" not in words[0] + words[1]:
        kind, name = words
    else:
        raise click.UsageError("one object at a time, as KIND/NAME.")
    if not name or "/" in name:
        raise click.UsageError(f"{'/'.join(words)!r} names no object; KIND/NAME does.")
    return Subject(_kind(kind), name)


def _kind(word: str) -> str:
    """The kind that is meant: `pods`, `Job`, `resourceclaims.resource.k8s.io`."""
    plural, _, group = word.lower().partition(".")
    kind = _NAMES.get(plural)
    if kind is None or (group and group != _GROUPS[kind]):
        raise click.UsageError(f"{word!r} cannot be explained; these can: {', '.join(_KINDS)}.")
    return kind
