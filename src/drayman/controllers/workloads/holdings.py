"""Which objects a controller's objects own, up to and including the controller's own writes.

A cache lags behind what its reader has just written. A controller that counted its pods in the cache alone would create them a second time.
Kubernetes waits until the cache has caught up ("expectations"); here the answers to the controller's own writes are taken in at once, and
nothing has to wait when the cache is late. Versions decide which of two states of an object is newer, and how far the informer has come
decides whether an answer is news at all.
"""

from __future__ import annotations

from typing import Final, Generic, Protocol, TypeVar

from drayman.api.meta import ObjectMeta, controller_of
from drayman.cluster.informer import Handler, Informer, Notice


class HasMetadata(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=HasMetadata)


_LOOSE: Final = "workloads:loose"


def version_of(text: str) -> int:
    """A resourceVersion as a number, as documented since Kubernetes 1.35; 0 where it is not one."""
    return int(text) if text.isdecimal() else 0


class Holdings(Generic[T]):
    """Objects of one kind by the uid of their controller, for controllers of one kind."""

    def __init__(self, informer: Informer[T], owner_kind: str, changed: Handler[T]) -> None:
        """`changed` is called for every change to objects of such controllers or of none, after it is taken in."""
        self._informer = informer
        self._owner_kind = owner_kind
        self._changed = changed
        self._objects: dict[str, T] = {}
        self._owned: dict[str, dict[str, T]] = {}
        self._gone: set[str] = set()
        """Removed by us; the cache may still report earlier changes."""
        informer.cache.add_indexers({_LOOSE: _home_of_loose})
        informer.add_handler(self._take)

    def of(self, owner_uid: str) -> list[T]:
        """What an object owns, sorted by name."""
        found = self._owned.get(owner_uid, {}).values()
        return sorted(found, key=lambda value: value.metadata.name)

    def loose(self, namespace: str) -> list[T]:
        """The objects of a namespace that have no controller."""
        found = self._informer.cache.by_index(_LOOSE, namespace)
        return [value for value in found if value.metadata.uid not in self._objects]

    def wrote(self, value: T) -> None:
        """Takes in an object as the server answered a create or a change of ours."""
        seen = version_of(self._informer.resource_version)
        if version_of(value.metadata.resource_version) > seen:
            self._put(value)

    def deleted(self, value: T, answer: T | None) -> None:
        """Takes in the answer to a delete: the object as it ends, or None if it is gone."""
        uid = value.metadata.uid
        if uid not in self._objects:
            return
        if answer is not None and answer.metadata.deletion_timestamp is not None:
            self._put(answer)
        else:
            self._drop(uid)
            self._gone.add(uid)

    def _take(self, notice: Notice[T]) -> None:
        """Most objects in a cluster do not concern this controller, so those are filtered out first."""
        metadata = notice.object.metadata
        owner = controller_of(metadata) if metadata.owner_references else None
        if (owner is None or owner.kind != self._owner_kind) and metadata.uid not in self._objects:
            if owner is None:
                self._changed(notice)
            return
        if notice.type == "DELETED":
            self._gone.discard(metadata.uid)
            self._drop(metadata.uid)
        elif metadata.uid not in self._gone and not self._is_old(notice.object):
            self._put(notice.object)
        self._changed(notice)

    def _is_old(self, value: T) -> bool:
        held = self._objects.get(value.metadata.uid)
        if held is None:
            return False
        return version_of(held.metadata.resource_version) > version_of(
            value.metadata.resource_version
        )

    def _put(self, value: T) -> None:
        metadata = value.metadata
        self._drop(metadata.uid)
        owner = controller_of(metadata)
        if owner is not None and owner.kind == self._owner_kind:
            self._owned.setdefault(owner.uid, {})[metadata.uid] = value
            self._objects[metadata.uid] = value

    def _drop(self, uid: str) -> None:
        old = self._objects.pop(uid, None)
        owner = None if old is None else controller_of(old.metadata)
        if owner is None:
            return
        home = self._owned[owner.uid]
        del home[uid]
        if not home:
            del self._owned[owner.uid]


def _home_of_loose(value: HasMetadata) -> tuple[str, ...]:
    """The namespace of an object that has no controller."""
    metadata = value.metadata
    if metadata.owner_references and controller_of(metadata) is not None:
        return ()
    return (metadata.namespace,)
