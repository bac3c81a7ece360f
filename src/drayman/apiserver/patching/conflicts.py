"""Conflicts: fields that another manager owns and that an apply would change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from drayman.apiserver.patching.field_set import FieldSet, Path, path_text
from drayman.apiserver.patching.managed_fields import Manager
from drayman.apiserver.protocol.errors import StatusCause, StatusError, Subject


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field and its owner."""

    manager: Manager
    path: Path


class ConflictError(StatusError):
    """An apply that would take fields from others and was not forced. 409, one cause for each field."""

    def __init__(self, conflicts: tuple[Conflict, ...]) -> None:
        causes = [
            StatusCause(
                "FieldManagerConflict", f"conflict with {c.manager.text}", path_text(c.path)
            )
            for c in conflicts
        ]
        super().__init__(409, "Conflict", _message(conflicts), Subject(), causes)
        self.conflicts = conflicts


def conflicts_of(owned: Mapping[Manager, FieldSet]) -> tuple[Conflict, ...]:
    """Every field of some sets as a conflict, by manager."""
    return tuple(
        Conflict(manager, path) for manager in sorted(owned) for path in owned[manager].paths()
    )


def _message(conflicts: tuple[Conflict, ...]) -> str:
    if len(conflicts) == 1:
        only = conflicts[0]
        return (
            f"Apply failed with 1 conflict: conflict with {only.manager.text}: "
            f"{path_text(only.path)}"
        )
    fields: dict[Manager, list[str]] = {}
    for conflict in conflicts:
        fields.setdefault(conflict.manager, []).append(f"- {path_text(conflict.path)}")
    lines: list[str] = []
    for manager in sorted(fields):
        lines += [f"conflicts with {manager.text}:", *fields[manager]]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
