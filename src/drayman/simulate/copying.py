"""Copies of what is to be submitted, as if the same files were submitted again under other names.

A copy has pods, claims and groups of its own, and its pods are a gang of their own. Templates, classes and everything else that is only
looked at are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from drayman.api.core import Pod, PodResourceClaim
from drayman.api.meta import ObjectMeta
from drayman.api.pod_groups import PodGroup
from drayman.placement.gangs.dialects import kai, kueue, own, plugin
from drayman.placement.world import Objects
from drayman.simulate.expanding import Workload

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
        claims = {_key(claim.metadata) for claim in self.objects.claims}
        groups = {_key(group.metadata) for group in self.objects.pod_groups}
        named = _Marks(
            {_key(group.metadata) for group in self.objects.plugin_pod_groups},
            {_key(group.metadata) for group in self.objects.kai_pod_groups},
        )
        for number in range(2, times + 1):
            yield _Copy(number, claims, groups, named).of(self)


def objects_of(copies: Sequence[Wanted]) -> Objects:
    """What joins the cluster with all copies. Beyond the first they bring only claims and groups."""
    if not copies:
        return Objects()
    return changed(
        copies[0].objects,
        claims=tuple(claim for copy in copies for claim in copy.objects.claims),
        pod_groups=tuple(group for copy in copies for group in copy.objects.pod_groups),
        plugin_pod_groups=tuple(g for copy in copies for g in copy.objects.plugin_pod_groups),
        kai_pod_groups=tuple(g for copy in copies for g in copy.objects.kai_pod_groups),
    )


@dataclass(frozen=True, slots=True)
class _Marks:
    """Labels and annotations by which pods are in a gang. Where they name an object, it has to be one that is copied too."""

    plugin_groups: _Names
    kai_groups: _Names

    def renamed(
        self, given: Mapping[str, str], namespace: str, name: Callable[[str], str]
    ) -> dict[str, str]:
        """Labels, or annotations, that name the gang of a copy."""
        return {
            key: name(value) if self._is_own(key, (namespace, value)) else value
            for key, value in given.items()
        }

    def _is_own(self, key: str, named: tuple[str, str]) -> bool:
        if key == plugin.LABEL:
            return named in self.plugin_groups
        if key == kai.POD_GROUP:
            return named in self.kai_groups
        return key in (kueue.NAME, own.NAME)


@dataclass(frozen=True, slots=True)
class _Copy:
    """One of several copies. References are changed only where they name something that is copied too."""

    number: int
    claims: _Names
    groups: _Names
    marks: _Marks

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
        given = {**owner.spec.template}
        metadata = {**(given.get("metadata") or {})}
        for name in ("labels", "annotations"):
            if metadata.get(name):
                metadata[name] = self._marked(metadata[name], owner.metadata.namespace)
        spec = replace(owner.spec, template={**given, "metadata": metadata})
        return Workload(template, self._renamed(replace(owner, spec=spec)), workload.title)

    def _marked(self, given: Mapping[str, str], namespace: str) -> dict[str, str]:
        return self.marks.renamed(given, namespace, self._name)

    def _pod(self, pod: Pod) -> Pod:
        """A pod that uses the claims and the group of the copy."""
        spec, namespace = pod.spec, pod.metadata.namespace
        entries = tuple(self._entry(entry, namespace) for entry in spec.resource_claims)
        group = spec.scheduling_group
        if group is not None and (namespace, group.pod_group_name) in self.groups:
            group = replace(group, pod_group_name=self._name(group.pod_group_name or ""))
        metadata = replace(
            pod.metadata,
            labels=self._marked(pod.metadata.labels, namespace),
            annotations=self._marked(pod.metadata.annotations, namespace),
        )
        spec = replace(spec, resource_claims=entries, scheduling_group=group)
        return replace(pod, metadata=metadata, spec=spec)

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
        renamed = replace(
            metadata, name=self._name(metadata.name), uid=f"{metadata.uid}-{self.number}"
        )
        return replace(value, metadata=renamed)

    def _name(self, name: str) -> str:
        return f"{name}-{self.number}"


def _key(metadata: ObjectMeta) -> tuple[str, str]:
    return metadata.namespace, metadata.name
