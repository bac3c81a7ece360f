"""Claim templates and device classes on workers: brought there, kept in step with the manager, and removed when nobody needs them.

What a worker has of its own is left alone. Claim templates cannot be changed, so one that has changed is deleted and made again; claims
that were made from it stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drayman.api.kueue_workload import WorkloadSpec
from drayman.api.resource import ResourceClaimTemplate
from drayman.cluster.cache import Cache
from drayman.cluster.errors import AlreadyExistsError, NotFoundError
from drayman.cluster.informers import Informers
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import DEVICE_CLASSES, RESOURCE_CLAIM_TEMPLATES, Resource
from drayman.controllers.multikueue.workers import Worker
from drayman.workloads.dispatching.copies import (
    Copied,
    Match,
    Needs,
    copy_of,
    is_ours,
    match,
    named_templates,
    needs_of,
)


class Copying:
    """Copies from a manager."""

    def __init__(self, informers: Informers) -> None:
        self._templates = informers.informer(RESOURCE_CLAIM_TEMPLATES).cache
        self._classes = informers.informer(DEVICE_CLASSES).cache

    def needs(self, namespace: str, spec: WorkloadSpec) -> Needs:
        """What a workload needs, as the manager has it."""
        templates = {
            name: found
            for name in named_templates(spec)
            if (found := self._templates.get(name, namespace)) is not None
        }
        return needs_of(spec, templates, {each.metadata.name: each for each in self._classes})

    def obstacle(self, worker: Worker, needs: Needs, origin: str) -> str:
        """What a worker has that says something else; empty if there is nothing."""
        for each, there in self._pairs(worker, needs):
            if match(each, there, origin) is Match.FOREIGN:
                return f"its own {each.kind} {each.metadata.name} is not like the one here"
        return ""

    async def bring(self, worker: Worker, needs: Needs, origin: str) -> None:
        """Have everything on a worker that is not there, or not as it is here. What it has of its own is not touched."""
        for each, there in self._pairs(worker, needs):
            found = match(each, there, origin)
            resource = _resource_of(each)
            if found is Match.OUTDATED:
                assert there is not None
                await _delete(worker, resource, there)
            if found in (Match.OUTDATED, Match.MISSING):
                body = copy_of(each, origin)
                try:
                    await worker.client.create(resource.as_values(), body)
                except AlreadyExistsError:
                    continue  # The cache will show what it is.

    async def collect(self, worker: Worker, needed: Iterable[Needs], origin: str) -> None:
        """Remove copies from a worker that no workload there needs."""
        kept: set[tuple[str, str, str]] = set()
        for needs in needed:
            kept.update(_identity(each) for each in needs.templates)
            kept.update(_identity(each) for each in needs.classes)
        caches: tuple[Cache[Any], ...] = (worker.templates, worker.classes)
        for cache in caches:
            for each in cache:
                if is_ours(each.metadata, origin) and _identity(each) not in kept:
                    await _delete(worker, _resource_of(each), each)

    def _pairs(self, worker: Worker, needs: Needs) -> Iterable[tuple[Copied, Copied | None]]:
        for template in needs.templates:
            metadata = template.metadata
            yield template, worker.templates.get(metadata.name, metadata.namespace)
        for each in needs.classes:
            yield each, worker.classes.get(each.metadata.name)


def _identity(each: Copied) -> tuple[str, str, str]:
    return each.kind, each.metadata.namespace, each.metadata.name


def _resource_of(each: Copied) -> Resource[Any]:
    return RESOURCE_CLAIM_TEMPLATES if isinstance(each, ResourceClaimTemplate) else DEVICE_CLASSES


async def _delete(worker: Worker, resource: Resource[Any], each: Copied) -> None:
    metadata = each.metadata
    options = DeleteOptions(uid=metadata.uid)
    try:
        await worker.client.delete(
            resource, metadata.name, metadata.namespace or None, options=options
        )
    except NotFoundError:
        return
