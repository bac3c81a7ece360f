"""Annotations of `drayman.dev` on pods and on what makes pods: names that nobody reads, values that make no sense, and wrong places.

Nothing is refused here. Other clusters accept such objects, and what runs there has to run here; but whoever writes one is told at once,
and not only by an event of a pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from drayman.api.alignment import ALIGN
from drayman.apiserver.kinds.reading import at, map_at
from drayman.apiserver.served.strategy import Object
from drayman.node.simulated.model import EXIT_CODE, READY_AFTER, RUN_FOR
from drayman.placement import min_runtime
from drayman.placement.gangs.dialects import own
from drayman.placement.gangs.gang import InvalidGangError
from drayman.placement.gangs.statements import Statements
from drayman.placement.prices import COST, SPOT
from drayman.placement.runs import declaring
from drayman.reasons.slips import similar
from drayman.workloads.dispatching.names import COPY_OF

_DOMAIN: Final = "drayman.dev/"
_LABELS: Final = frozenset({COST, SPOT})
"""What may be a label of a pod as well."""
OF_JOBS: Final = own.STATED | {min_runtime.MIN_RUNTIME, declaring.RUNTIME}
"""What counts for the pods of a Job when the Job has it."""
OF_PODS: Final = OF_JOBS | _LABELS | {ALIGN, RUN_FOR, EXIT_CODE, READY_AFTER}
_WRITTEN: Final = frozenset({COPY_OF})
"""What control loops write for themselves."""
_KNOWN: Final = dict.fromkeys(sorted(OF_PODS), 1)
_NOTHING: Final[Mapping[str, str]] = {}
_TEMPLATE: Final = "spec.template.metadata.annotations"


def warnings_about_pod(
    metadata: Object, path: str = "metadata", of_job: Mapping[str, str] = _NOTHING
) -> list[str]:
    """About the metadata of a pod, or of the template of pods. What a Job states counts for its pods as well."""
    annotations = _own(map_at(metadata, "annotations"))
    labels = _own(map_at(metadata, "labels"))
    if not annotations and not labels:
        return []
    found = [*_unknown(annotations, f"{path}.annotations")]
    found += (
        f"{path}.labels[{name}]: has no effect as a label; make it an annotation"
        for name in labels
        if name in OF_PODS - _LABELS
    )
    prefix = path.removesuffix("metadata")
    return [*found, *(f"{prefix}{text}" for text in _misstated(annotations, of_job))]


def warnings_about_job(new: Object, old: Object | None) -> list[str]:
    """About the metadata of a Job, and a gang that is larger than the Job lets it be."""
    annotations = _own(map_at(new, "metadata", "annotations"))
    parallel = at(new, "spec", "parallelism")
    if old is not None and (annotations, parallel) == (
        _own(map_at(old, "metadata", "annotations")),
        at(old, "spec", "parallelism"),
    ):
        return []
    found = [*_unknown(annotations, "metadata.annotations")]
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
    if old is not None and annotations == _own(map_at(old, "metadata", "annotations")):
        return []
    return [*_misplaced(annotations, "here")]


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
        if name.startswith(_DOMAIN) and name not in _WRITTEN
    }


def _unknown(annotations: Mapping[str, str], path: str) -> Iterator[str]:
    for name in annotations:
        if name not in OF_PODS:
            near = [each for each, _ in similar(name, _KNOWN)]
            meant = f"; did you mean {' or '.join(near)}?" if near else ""
            yield f"{path}[{name}]: there is no such annotation, so it has no effect{meant}"


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
