"""Admission: rules about a write that need more than the object itself.

Plug-ins run in order, first those that change the object, then those that only check it. A plug-in refuses by raising StatusError.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import msgspec

from drayman.apiserver.served.strategy import Context, Object

if TYPE_CHECKING:
    from drayman.apiserver.served.resources import ApiResource

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class Admitted(msgspec.Struct, frozen=True):
    """The write that a plug-in judges. `new` is None for a deletion, `old` for a creation."""

    operation: Operation
    resource: ApiResource
    subresource: str
    namespace: str
    name: str
    new: Object | None
    old: Object | None
    context: Context


class AdmissionPlugin:
    """A rule. Override either half."""

    def admit(self, write: Admitted) -> None:
        """Change `write.new` in place, or refuse."""

    def validate(self, write: Admitted) -> None:
        """Refuse if needed. The object is final."""


@dataclass(slots=True)
class Admission:
    """The chain of plug-ins."""

    plugins: list[AdmissionPlugin] = field(default_factory=list)

    def admit(self, write: Admitted) -> None:
        for plugin in self.plugins:
            plugin.admit(write)

    def validate(self, write: Admitted) -> None:
        for plugin in self.plugins:
            plugin.validate(write)
