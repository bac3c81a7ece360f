"""Copies of what is to be submitted, as if the same files were submitted again under other names.

A copy has pods, claims and gangs of its own. Templates, classes and everything else that is only looked at are shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from drayman.api.core import Pod, PodResourceClaim
from drayman.api.custom_groups import CustomObject
from drayman.api.meta import ObjectMeta
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import ResourceClaim
from drayman.placement.gangs.dialects import kai, kueue, own, plugin
from drayman.placement.world import Objects
from drayman.simulate.expanding import Owner, Workload

T = TypeVar("T", bound=msgspec.Struct)
_Names = set[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be submitted: workloads in order, and the objects that come with them."""

    workloads: tuple[Workload, ...] = ()
    objects: Objects = field(default_factory=Objects)

    def copies(self, times: int) -> Iterator[Wanted]:
        """That many copies, the first one unchanged."""
        if times > 0:
            yield self
        claims, groups = _names(self.objects.claims), _names(self.objects.pod_groups)
        named = {
            plugin.LABEL: _names(self.objects.plugin_pod_groups),
            kai.POD_GROUP: _names(self.objects.kai_pod_groups),
        }
        for number in range(2, times + 1):
            yield _Copy(number, claims, groups, named).of(self)


def objects_of(copies: Sequence[Wanted]) -> Objects:
    """What joins the cluster with all copies. Beyond the first they bring only claims and groups."""
    if not copies:
        return Objects()
    of_their_own: dict[str, Any] = {
        member: tuple(value for copy in copies for value in getattr(copy.objects, member))
        for member in ("claims", "pod_groups", "plugin_pod_groups", "kai_pod_groups")
    }
    return changed(copies[0].objects, **of_their_own)


@dataclass(frozen=True, slots=True)
class _Copy:
    """One of several copies. References are changed only where they name something that is copied too."""

    number: int
    claims: _Names
    groups: _Names
    named: Mapping[str, _Names]
    """Groups of other schedulers, by the label or annotation that names them."""

    def of(self, wanted: Wanted) -> Wanted:
        objects = Objects(
            claims=tuple(map(self._renamed, wanted.objects.claims)),
            pod_groups=tuple(self._group(group) for group in wanted.objects.pod_groups),
            plugin_pod_groups=tuple(map(self._renamed, wanted.objects.plugin_pod_groups)),
            kai_pod_groups=tuple(map(self._renamed, wanted.objects.kai_pod_groups)),
        )
        return Wanted(tuple(self._workload(w) for w in wanted.workloads), objects)

    def _workload(self, workload: Workload) -> Workload:
        owner, template = workload.owner, self._pod(workload.template)
        if owner is None:
            return Workload(self._renamed(template), copy_of=workload.title)
        return Workload(template, self._owner(owner), workload.title)

    def _pod(self, pod: Pod) -> Pod:
        """A pod that uses the claims of the copy and is in its gang."""
        spec, namespace = pod.spec, pod.metadata.namespace
        entries = tuple(self._entry(entry, namespace) for entry in spec.resource_claims)
        group = spec.scheduling_group
        if group is not None and (namespace, group.pod_group_name) in self.groups:
            group = replace(group, pod_group_name=self._name(group.pod_group_name or ""))
        return replace(
            pod,
            metadata=self._marked(pod.metadata),
            spec=replace(spec, resource_claims=entries, scheduling_group=group),
        )

    def _marked(self, metadata: ObjectMeta) -> ObjectMeta:
        """The labels and annotations that name a gang, with the name that it has in the copy."""
        namespace = metadata.namespace
        return replace(
            metadata,
            labels=self._marks(metadata.labels, namespace),
            annotations=self._marks(metadata.annotations, namespace),
        )

    def _owner(self, owner: Owner) -> Owner:
        """The same on an owner and in its template."""
        namespace, template = owner.metadata.namespace, owner.spec.template
        given = template.get("metadata") or {}
        marked = {
            each: self._marks(given[each], namespace)
            for each in ("labels", "annotations")
            if given.get(each)
        }
        spec = replace(owner.spec, template={**template, "metadata": {**given, **marked}})
        return self._renamed(replace(owner, metadata=self._marked(owner.metadata), spec=spec))

    def _marks(self, given: dict[str, str], namespace: str) -> dict[str, str]:
        return {
            mark: self._name(name) if self._is_copied(namespace, mark, name) else name
            for mark, name in given.items()
        }

    def _is_copied(self, namespace: str, mark: str, name: str) -> bool:
        """Whether a label or annotation names a gang that is copied. One without an object consists of its pods, so it is."""
        if mark in (kueue.NAME, own.NAME):
            return True
        return (namespace, name) in self.named.get(mark, ())

    def _group(self, group: PodGroup) -> PodGroup:
        entries = tuple(
            self._entry(entry, group.metadata.namespace) for entry in group.spec.resource_claims
        )
        return self._renamed(replace(group, spec=replace(group.spec, resource_claims=entries)))

    def _entry(self, entry: PodResourceClaim, namespace: str) -> PodResourceClaim:
        if (namespace, entry.resource_claim_name) not in self.claims:
            return entry
        return replace(entry, resource_claim_name=self._name(entry.resource_claim_name or ""))

    def _renamed(self, value: T) -> T:
        metadata: ObjectMeta = value.metadata  # type: ignore[attr-defined]
        own = replace(metadata, name=self._name(metadata.name), uid=f"{metadata.uid}-{self.number}")
        return replace(value, metadata=own)

    def _name(self, name: str) -> str:
        return f"{name}-{self.number}"


def _names(values: Iterable[ResourceClaim | PodGroup | CustomObject]) -> _Names:
    return {(value.metadata.namespace, value.metadata.name) for value in values}
