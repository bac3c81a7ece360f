"""What controllers whose objects own others have in common: finding what is theirs, adopting it and releasing it.

An object owns what names it as its controller. It adopts what has no controller and matches its selector, and releases what it owns that no
longer matches. Both are written with the uid and version of what was seen, so that no other change is overwritten.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from drayman.api import codec
from drayman.api.labels import LabelMatcher, compile_selector
from drayman.api.meta import LabelSelector, ObjectMeta, controller_of
from drayman.api.struct import Json
from drayman.cluster.breaks import Breaks
from drayman.cluster.errors import NotFoundError
from drayman.cluster.informer import Notice
from drayman.cluster.patches import Patch, merge_patch, strategic_merge_patch
from drayman.cluster.resources import Resource
from drayman.controllers.workloads.holdings import HasMetadata, Holdings
from drayman.controllers.workloads.reconciling import Key, LabelSet, Reconciler
from drayman.workloads.pod_bodies import Owning, owner_reference


class _Spec(Protocol):
    @property
    def selector(self) -> LabelSelector: ...


class Selecting(Owning, Protocol):
    """An object that finds others by their labels."""

    @property
    def spec(self) -> _Spec: ...


_OFFERS: Final = "/"
"""The name, which no object has, under which loose objects of a namespace are looked at."""

T = TypeVar("T", bound=Selecting)
C = TypeVar("C", bound=HasMetadata)


@lru_cache(maxsize=1 << 10)
def _matcher(canonical: bytes) -> LabelMatcher:
    return compile_selector(codec.decode(LabelSelector, canonical))


def matcher_of(selector: LabelSelector) -> LabelMatcher:
    """A parsed selector; the same one is parsed once."""
    return _matcher(codec.encode(selector))


class Owner(Reconciler[T], Generic[T, C]):
    """A controller whose objects own objects of another kind."""

    owned: ClassVar[Resource[Any]]
    adopted_with_finalizer: ClassVar[str] = ""

    def follow_others(self) -> None:
        self._offered: dict[str, set[LabelSet]] = {}
        """The labels of loose objects, by namespace, until it is known which objects adopt them. That takes a while where there are many,
        and what else follows what is owned must not wait for it."""
        self._breaks = Breaks()
        informer = self.informers.informer(self.owned)
        self.holdings: Holdings[C] = Holdings(informer, self.resource.kind, self._owned_changed)

    @abstractmethod
    def selects(self, value: T) -> bool:
        """Whether an object adopts what has no controller."""

    def owned_changed(self, notice: Notice[C]) -> None:
        """Called on each change to what is owned or loose, after the owner was put into the queue."""

    async def claim(self, value: T) -> list[C]:
        """What an object owns, after it has adopted and released what it should."""
        metadata, matcher = value.metadata, matcher_of(value.spec.selector)
        kept = []
        for held in self.holdings.of(metadata.uid):
            if matcher.matches(held.metadata.labels):
                kept.append(held)
            elif metadata.deletion_timestamp is None:
                await self._release(value, held)
        if metadata.deletion_timestamp is not None or not self.selects(value):
            return kept
        wanted = [
            loose
            for loose in self.holdings.loose(metadata.namespace)
            if loose.metadata.deletion_timestamp is None and matcher.matches(loose.metadata.labels)
        ]
        return [*kept, *[await self._adopt(value, loose) for loose in wanted]]

    async def patch_owned(self, held: C, patch: Patch) -> C:
        metadata = held.metadata
        written: C = await self.client.patch(self.owned, metadata.name, patch, metadata.namespace)
        self.holdings.wrote(written)
        return written

    async def _adopt(self, value: T, loose: C) -> C:
        owners = [*loose.metadata.owner_references, owner_reference(value)]
        change: dict[str, Json] = {
            "uid": loose.metadata.uid,
            # The list of owners is replaced as a whole, so it has to be the present one.
            "resourceVersion": loose.metadata.resource_version,
            "ownerReferences": [codec.to_dict(owner) for owner in owners],
        }
        if self.adopted_with_finalizer:
            change["finalizers"] = [*loose.metadata.finalizers, self.adopted_with_finalizer]
        return await self.patch_owned(loose, merge_patch({"metadata": change}))

    async def _release(self, value: T, held: C) -> None:
        change: dict[str, Json] = {
            "uid": held.metadata.uid,
            "ownerReferences": [{"$patch": "delete", "uid": value.metadata.uid}],
        }
        if self.adopted_with_finalizer:
            change["$deleteFromPrimitiveList/finalizers"] = [self.adopted_with_finalizer]
        try:
            await self.patch_owned(held, strategic_merge_patch({"metadata": change}))
        except NotFoundError:
            self.holdings.deleted(held, None)

    def _owned_changed(self, notice: Notice[C]) -> None:
        metadata = notice.object.metadata
        owner = controller_of(metadata)
        if owner is not None:
            if owner.kind == self.resource.kind:
                self.queue.add((metadata.namespace, owner.name))
        elif notice.type != "DELETED":
            self._offer(metadata)
        if notice.old is not None:
            before = controller_of(notice.old.metadata)
            if before is not None and before.kind == self.resource.kind and before != owner:
                self.queue.add((metadata.namespace, before.name))
        self.owned_changed(notice)

    def _offer(self, metadata: ObjectMeta) -> None:
        if metadata.labels and self.has_any(metadata.namespace):
            offered = self._offered.setdefault(metadata.namespace, set())
            offered.add(frozenset(metadata.labels.items()))
            self.queue.add((metadata.namespace, _OFFERS))

    async def attend(self, key: Key) -> None:
        if key[1] == _OFFERS:
            await self._find_takers(key[0])
        else:
            await super().attend(key)

    async def _find_takers(self, namespace: str) -> None:
        """Queues the objects that may adopt something loose."""
        offered = [dict(labels) for labels in self._offered.pop(namespace, ())]
        for value in self.in_namespace(namespace):
            if not self.selects(value):
                continue
            matches = matcher_of(value.spec.selector).matches
            for labels in offered:
                await self._breaks.between()
                if matches(labels):
                    self.queue.add((namespace, value.metadata.name))
                    break
