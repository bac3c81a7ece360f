"""The strategy of a kind, put together from its rules.

The specific parts of a kind (defaults, checks) are plain functions; what all kinds share (metadata, the status that only its own
endpoint may write) is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from drayman.api.codec import convert
from drayman.api.formats import Problems, dns_subdomain_problems
from drayman.api.meta import ObjectMeta
from drayman.api.validation import FieldError
from drayman.api.validation.metadata import check_metadata, check_metadata_update
from drayman.apiserver.served.strategy import Context, Object, StatusStrategy, Strategy, restore

Errors = Iterator[FieldError]
NameProblems = Callable[[str], Problems]
Change = Callable[[Object, Context], None]
Check = Callable[[Object, Context], Errors]
UpdateCheck = Callable[[Object, Object, Context], Errors]
Warn = Callable[[Object, Object | None, Context], list[str]]


def no_change(_obj: Object, _context: Context) -> None:
    """For kinds without defaults."""


def no_update_errors(_new: Object, _old: Object, _context: Context) -> Errors:
    return iter(())


def add_finalizer(obj: Object, finalizer: str) -> None:
    """Have a new object wait for this finalizer when it is deleted."""
    before = obj["metadata"].get("finalizers") or []
    if finalizer not in before:
        obj["metadata"]["finalizers"] = [*before, finalizer]


def metadata_of(obj: Object) -> ObjectMeta:
    return convert(ObjectMeta, obj.get("metadata") or {})


@dataclass(frozen=True, kw_only=True)
class Rules(Strategy):
    """The rules of a kind for its main endpoint."""

    namespaced: bool = True
    name_problems: NameProblems = dns_subdomain_problems
    defaults: Change = no_change
    prepare: Change = no_change
    """What is set on creation, after the defaults."""
    checks: Check = lambda _obj, _context: iter(())
    update_checks: UpdateCheck = no_update_errors
    """What may not change."""
    warns: Warn = lambda _new, _old, _context: []
    rechecks: bool = True
    """Whether an update is also checked like a new object."""

    def default(self, obj: Object, context: Context) -> None:
        self.defaults(obj, context)

    def prepare_for_create(self, obj: Object, context: Context) -> None:
        obj.pop("status", None)
        self.prepare(obj, context)

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        restore(new, old, "status")

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        return [*self._metadata_errors(obj), *self.checks(obj, context)]

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        errors = [*check_metadata_update(metadata_of(new), metadata_of(old))]
        if self.rechecks:
            errors += self._metadata_errors(new)
            errors += self.checks(new, context)
        errors += self.update_checks(new, old, context)
        return errors

    def warnings(self, new: Object, old: Object | None, context: Context) -> list[str]:
        return self.warns(new, old, context)

    def _metadata_errors(self, obj: Object) -> Errors:
        return check_metadata(
            metadata_of(obj), namespaced=self.namespaced, name_problems=self.name_problems
        )


@dataclass(frozen=True, kw_only=True)
class StatusRules(StatusStrategy):
    """The rules of a kind for its status endpoint. Labels and annotations may be written here too."""

    defaults: Change = no_change
    update_checks: UpdateCheck = no_update_errors

    def default(self, obj: Object, context: Context) -> None:
        self.defaults(obj, context)

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        return [
            *check_metadata_update(metadata_of(new), metadata_of(old)),
            *self.update_checks(new, old, context),
        ]


@dataclass(frozen=True, kw_only=True)
class BareStatusRules(StatusRules):
    """A status endpoint that does not change metadata."""

    reset_fields: ClassVar[tuple[tuple[str, ...], ...]] = (("metadata",), ("spec",))
    keeps_metadata: ClassVar[tuple[str, ...]] = ("*",)
