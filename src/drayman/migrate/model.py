"""What goes into a migration and what comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from drayman.migrate.shapes import Object
from drayman.migrate.survey import Survey


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to know about an object. `is_lost`: what the manifest asked for is not in the result."""

    file: str
    line: int
    object: str
    field: str
    message: str
    is_lost: bool

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: {self.object}"
        return (
            f"{where}: {self.field}: {self.message}" if self.field else f"{where}: {self.message}"
        )


@dataclass(frozen=True, slots=True)
class MigratedFile:
    """A file as it was and as it is to be."""

    name: str
    before: str
    after: str

    @property
    def is_changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class Migration:
    """All files, and the remarks about them, in the order of the files."""

    files: Sequence[MigratedFile]
    remarks: Sequence[Remark]

    @property
    def is_complete(self) -> bool:
        """Whether everything was carried over."""
        return not any(remark.is_lost for remark in self.remarks)


@dataclass(slots=True)
class Scope:
    """The object that is being rewritten: what rules may look up, and where they report what they did."""

    survey: Survey
    kind: str
    namespace: str
    name: str
    said: list[tuple[str, str, bool]] = field(default_factory=list)
    """(field, message, whether something is lost)"""
    created: list[Object] = field(default_factory=list)
    """Objects that the rewritten one needs, to be placed before it."""
    is_removed: bool = False

    def lost(self, path: str, message: str) -> None:
        """Say what could not be carried over and why."""
        self.said.append((path, message, True))

    def note(self, path: str, message: str) -> None:
        """Say what was done that the author may want to know."""
        self.said.append((path, message, False))

    def remove(self, message: str) -> None:
        """Leave the object out of the result."""
        self.is_removed = True
        self.note("", message)
