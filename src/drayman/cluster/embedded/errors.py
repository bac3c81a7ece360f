"""Every exception of the embedded store.

StoreError              the store cannot be opened, or a write could not be made durable
├── ConflictError       a write expected another revision of an object
├── RefusedError        a write violates a constraint on the store
└── TooOldError         a watch or list asks for history that is no longer kept
"""

from __future__ import annotations

from collections.abc import Iterable

from drayman.cluster.embedded.model import Key, Stored


class StoreError(Exception):
    """The store cannot do what was asked; the message is one sentence for the person who runs it."""


class ConflictError(StoreError):
    """A write expected a different revision of the object. Nothing of its transaction was written.

    `found` is the object as it is, writes under way included, and None where there is none.
    """

    def __init__(self, key: Key, expected: int | None, found: Stored | None) -> None:
        super().__init__(f"{key} {_found(found)}, not {_wanted(expected)}")
        self.key = key
        self.expected = expected
        self.found = found


class RefusedError(StoreError):
    """A write violates a constraint on the store. Nothing of its transaction was written.

    `holders` are the objects that have what it wanted.
    """

    def __init__(self, key: Key, why: str, holders: Iterable[Key] = ()) -> None:
        super().__init__(f"{key}: {why}")
        self.key = key
        self.why = why
        self.holders = tuple(holders)


class TooOldError(StoreError):
    """History that far back is gone: the caller has to list again and go on from there."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"revision {asked} is too old: history begins after revision {oldest}")
        self.asked = asked
        self.oldest = oldest


def _found(found: Stored | None) -> str:
    return "does not exist" if found is None else f"is at revision {found.revision}"


def _wanted(expected: int | None) -> str:
    match expected:
        case None:
            return "at any revision"
        case 0:
            return "absent"
        case revision:
            return f"at revision {revision}"
