"""Custom kinds about which the server knows more than a definition can say: how their versions differ, and rules in code.

Such an object is converted when it comes in, so that everything after that (defaults, rules, what it is compared with) is about the
version in which it is stored, and errors name the fields of that version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar

from drayman.api.validation.field_errors import FieldError
from drayman.apiserver.extensions.custom_form import CustomConversion
from drayman.apiserver.extensions.custom_strategy import (
    CustomStatusStrategy,
    CustomStrategy,
    VersionRules,
)
from drayman.apiserver.extensions.pruning import prune
from drayman.apiserver.served.strategy import Context, Object

Step = Callable[[Object], None]


@dataclass(frozen=True, slots=True)
class KnownKind:
    """What is known about a custom kind."""

    hub: str
    """The version in which its objects have to be stored for this to hold."""
    to_hub: Mapping[str, Step]
    """Changes an object of another version, in place, to that of the hub."""
    from_hub: Mapping[str, Step]
    errors: Callable[[Object], Iterator[FieldError]]
    update_errors: Callable[[Object, Object], Iterator[FieldError]] | None = None


@dataclass(frozen=True, slots=True)
class KnownConversion(CustomConversion):
    """Between the versions of such a kind."""

    kind: KnownKind

    def to_hub(self, obj: Object, version: str) -> Object:
        step = self.kind.to_hub.get(version)
        if step is None:
            return obj
        converted: Object = deepcopy(obj)
        step(converted)
        return converted

    def from_hub(self, obj: Object, version: str) -> Object:
        shown: Object = deepcopy(obj)
        step = self.kind.from_hub.get(version)
        if step is not None:
            step(shown)
        prune(shown, self.schemas[version], is_root=True)
        return shown


@dataclass(frozen=True, slots=True)
class KnownStrategy(CustomStrategy):
    """The rules of such a kind."""

    kind: KnownKind

    def _rules(self, context: Context) -> VersionRules:
        return self.versions[self.storage]

    def _before(self, old: Object, context: Context) -> Object:
        return old

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        # Explicitly: a dataclass with slots is another class than the one that `super()` would mean.
        return CustomStrategy.validate(self, obj, context) or [*self.kind.errors(obj)]

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        errors = CustomStrategy.validate_update(self, new, old, context)
        return errors or [*self.kind.errors(new), *self.changes(new, old)]

    def changes(self, new: Object, old: Object) -> Iterator[FieldError]:
        if self.kind.update_errors is not None:
            yield from self.kind.update_errors(new, old)


class KnownWholeStrategy(KnownStrategy):
    """For kinds without a status."""

    __slots__ = ()
    reset_fields: ClassVar[tuple[tuple[str, ...], ...]] = ()


@dataclass(frozen=True, slots=True)
class KnownStatusStrategy(CustomStatusStrategy):
    """The status endpoint of such a kind."""

    main: KnownStrategy

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        errors = CustomStatusStrategy.validate_update(self, new, old, context)
        return errors or [*self.main.kind.errors(new), *self.main.changes(new, old)]
