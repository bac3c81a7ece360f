"""The rules of a kind, as the server applies them when it writes an object.

Order on create: default, admission, prepare, validate, then write. Order on update: default, admission, prepare, validate.
Objects are decoded JSON in the hub version. The object a method may change is a private copy; `old` must not be changed.
Methods read other objects through `Context.objects` and never block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import msgspec

from drayman.api.struct import Json
from drayman.api.times import timestamp
from drayman.apiserver.protocol.access import ADMIN, User
from drayman.apiserver.protocol.environment import Ids
from drayman.apiserver.protocol.limits import LARGE_WORK

if TYPE_CHECKING:
    from drayman.api.validation import FieldError

Object = dict[str, Json]

LARGE_EXPRESSIONS: Final = 2 * 1024
"""What `LARGE_WORK` is for kinds with expressions in CEL: ten thousand bytes of those take a third of a second to compile."""


class ObjectReader(Protocol):
    """Read access to every object, as of the latest write. `resource` is the storage name, as in `deployments.apps`."""

    def get(self, resource: str, namespace: str, name: str) -> Object | None: ...

    def list(self, resource: str, namespace: str | None = None) -> list[Object]: ...


class Context(msgspec.Struct, frozen=True):
    """The circumstances of one write."""

    objects: ObjectReader
    moment: datetime
    ids: Ids
    version: str = "v1"
    """The API version the client wrote in."""
    namespace: str = ""
    user: User = ADMIN
    dry_run: bool = False
    warnings: list[str] = msgspec.field(default_factory=list)
    """Collects what the client is warned of."""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    """Collects what the audit log notes about the request."""

    @property
    def now(self) -> str:
        return timestamp(self.moment)


class Strategy:
    """Rules of a kind that has none of its own: any object is fine. Subclasses override what they need."""

    reset_fields: ClassVar[tuple[tuple[str, ...], ...]] = (("status",),)
    """Paths that a write through this endpoint cannot change: managedFields must not claim them."""
    graceful: ClassVar[bool] = False
    """Whether deleted objects of this kind may stay for a while without finalizers, as pods do."""
    quick_parts: ClassVar[frozenset[tuple[str, str]]] = frozenset()
    """Members of the metadata or the status that can be judged without the rest of the object, by `settle_parts`."""

    @property
    def large_from(self) -> int:
        """From how many bytes on a write is planned outside the event loop, since it might take long."""
        return LARGE_WORK

    @property
    def has_costly_rules(self) -> bool:
        """Whether even a small write might take long. Then it is first tried with a small allowance: see `quick_rules`."""
        return False

    def preparation(self, obj: Object) -> Callable[[], object] | None:
        """Work that depends on the content of an object alone and makes its checks quick; None if they are quick without it.

        It may be done in any thread, before a write whose plan is made in the event loop although its object is large.
        """
        return None

    def default(self, obj: Object, context: Context) -> None:
        """Fill in what the client left out. `context.version` is the version it wrote in."""

    def prepare_for_create(self, obj: Object, context: Context) -> None:
        """Take out what a client may not set, such as the status. Metadata is prepared already; the name is final."""

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        """Restore what a write through this endpoint may not change. Metadata the server owns is restored already."""

    def settle_parts(self, new: Object, old: Object, context: Context) -> bool:
        """Complete parts of an object that were replaced, and return whether they are certainly valid.

        Only quick parts were replaced. `new` shares everything else with `old`: nothing but the parts and other members of what holds
        them may be changed. If they are not, the object goes through all the rules below, which report what is wrong.
        """
        return False

    def generation_changes(self, new: Object, old: Object) -> bool:
        """Whether an update raises the generation, for kinds that have one. Called after `prepare_for_update`."""
        return any(
            new.get(name) != old.get(name)
            for name in new.keys() | old.keys()
            if name not in ("metadata", "status")
        )

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        """The errors of an object about to be created, metadata included (see `validate_metadata`)."""
        return []

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        """The errors of replacing `old` by `new`, metadata included."""
        return []

    def warnings(self, new: Object, old: Object | None, context: Context) -> list[str]:
        """Warnings for the client. `old` is None on create."""
        return []

    def grace_seconds(self, obj: Object, asked: int | None, context: Context) -> int:
        """How long an object stays after its deletion was requested. Only called for kinds that are `graceful`."""
        return asked or 0


class StatusStrategy(Strategy):
    """A status endpoint: only the status changes. `keeps_metadata` names the metadata that is restored too.

    Subclasses add validation. The rules of the main endpoint's kind do not apply here.
    """

    reset_fields: ClassVar[tuple[tuple[str, ...], ...]] = (("spec",),)
    keeps_metadata: ClassVar[tuple[str, ...]] = ()
    """Names of metadata members taken from the old object; ("*",) for all but managedFields."""

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        for name in new.keys() | old.keys():
            if name not in ("metadata", "status"):
                restore(new, old, name)
        metadata, before = new["metadata"], old["metadata"]
        names = (
            (metadata.keys() | before.keys()) - {"managedFields", "resourceVersion"}
            if self.keeps_metadata == ("*",)
            else self.keeps_metadata
        )
        for name in names:
            restore(metadata, before, name)


def restore(new: Object, old: Mapping[str, Json], name: str) -> None:
    """Give a member back its old value, or its absence."""
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)
