"""Annotations of `drayman.dev` on pods and on what makes pods: names that nobody reads, values that make no sense, and wrong places.

Nothing is refused here. Other clusters accept such objects, and what runs there has to run here; but whoever writes one is told at once,
and not only by an event of a pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from drayman.apiserver.kinds.known_names import (
    KUEUE,
    LABELS_OF_PODS,
    OF_JOBS,
    OF_PODS,
    OWN,
    meant_by,
    unread,
)
from drayman.apiserver.kinds.misspelt_names import misspelt
from drayman.apiserver.kinds.reading import at, map_at
from drayman.apiserver.served.strategy import Object
from drayman.placement import min_runtime
from drayman.placement.gangs.dialects import own
from drayman.placement.gangs.gang import InvalidGangError
from drayman.placement.gangs.statements import Statements
from drayman.placement.runs import declaring
from drayman.workloads.dispatching.names import COPY_OF

_WRITTEN: Final = frozenset({COPY_OF})
"""What control loops write for themselves."""
_NOTHING: Final[Mapping[str, str]] = {}
_TEMPLATE: Final = "spec.template.metadata.annotations"


def warnings_about_pod(
    metadata: Object, path: str = "metadata", of_job: Mapping[str, str] = _NOTHING
) -> list[str]:
    """About the metadata of a pod, or of the template of pods. What a Job states counts for its pods as well."""
    annotations = _own(map_at(metadata, "annotations"))
    labels = _own(map_at(metadata, "labels"))
    found = [*misspelt(metadata, path=path, annotations_of=(KUEUE,))]
    if not annotations and not labels:
        return found
    found += _unknown(annotations, f"{path}.annotations")
    found += (
        f"{path}.labels[{name}]: has no effect as a label; make it an annotation"
        for name in labels
        if name in OF_PODS - LABELS_OF_PODS
    )
    prefix = path.removesuffix("metadata")
    return [*found, *(f"{prefix}{text}" for text in _misstated(annotations, of_job))]


def warnings_about_job(new: Object, old: Object | None) -> list[str]:
    """About the metadata of a Job, and a gang that is larger than the Job lets it be."""
    annotations = _own(map_at(new, "metadata", "annotations"))
    parallel = at(new, "spec", "parallelism")
    before = {} if old is None else map_at(old, "metadata")
    found = [*misspelt(map_at(new, "metadata"), before, annotations_of=(KUEUE,))]
    if old is not None and (annotations, parallel) == (
        _own(map_at(old, "metadata", "annotations")),
        at(old, "spec", "parallelism"),
    ):
        return found
    found += _unknown(annotations, "metadata.annotations")
    found += _misplaced({name: "" for name in annotations if name not in OF_JOBS}, "on a Job")
    template = map_at(new, "spec", "template", "metadata", "annotations")
    found += _misstated(annotations, template) if annotations else ()
    least = annotations.get(own.LEAST, "")
    if type(parallel) is int and least.isdecimal() and 0 < parallel < int(least[:9]):
        found.append(
            f"metadata.annotations[{own.LEAST}]: {least} pods start together, but the job has no more than"
            f" {parallel} at a time (spec.parallelism): they would wait for ever"
        )
    return found


def warnings_about_workload(new: Object, old: Object | None) -> list[str]:
    """About the metadata of anything else that makes pods from a template."""
    annotations = _own(map_at(new, "metadata", "annotations"))
    before = {} if old is None else map_at(old, "metadata")
    found = [*misspelt(map_at(new, "metadata"), before, annotations_of=(KUEUE,))]
    if old is not None and annotations == _own(map_at(old, "metadata", "annotations")):
        return found
    return [*found, *_misplaced(annotations, "here")]


def warnings_about_size(new: Object, old: Object | None) -> list[str]:
    """A gang that is larger than the set of pods that it consists of, or whose pods are not made at the same time."""
    spec = map_at(new, "spec")
    if old is not None and map_at(old, "spec") == spec:
        return []
    least = map_at(spec, "template", "metadata", "annotations").get(own.LEAST, "")
    if not (least.isascii() and least.isdecimal()):
        return []
    needed, field = int(least[:9]), f"{_TEMPLATE}[{own.LEAST}]: {least} pods start together"
    replicas = at(spec, "replicas")
    found = []
    if type(replicas) is int and 0 < replicas < needed:
        found.append(f"{field}, but spec.replicas is {replicas}: they would wait for ever")
    if needed > 1 and at(spec, "podManagementPolicy") == "OrderedReady":
        found.append(
            f"{field}, but the set makes one after the other: set spec.podManagementPolicy to Parallel"
        )
    return found


def _own(annotations: Mapping[str, str]) -> dict[str, str]:
    return {
        name: text
        for name, text in annotations.items()
        if name.startswith(OWN) and name not in _WRITTEN
    }


def _unknown(annotations: Mapping[str, str], path: str) -> Iterator[str]:
    for name in annotations:
        if name not in OF_PODS:
            yield unread(path, name, meant_by(name, is_of_pod=True))


def _misplaced(annotations: Mapping[str, str], where: str) -> Iterator[str]:
    for name in annotations:
        if name in OF_PODS:
            yield f"metadata.annotations[{name}]: has no effect {where}; put it into {_TEMPLATE}"


def _misstated(annotations: Mapping[str, str], beside: Mapping[str, str]) -> Iterator[str]:
    """What makes no sense, together with what is stated beside it, whose own mistakes are not told here."""
    try:
        own.declared_by(Statements("", annotations, "", beside))
    except InvalidGangError as error:
        name = error.field.partition("[")[2].rstrip("]")
        if name in annotations or name not in beside:
            yield f"{error.field}: {error.message}"
    yield from min_runtime.misstated(annotations)
    yield from declaring.misstated(annotations)
