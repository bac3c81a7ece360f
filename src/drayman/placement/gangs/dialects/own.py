"""Gangs by annotation: `drayman.dev/gang: "8"` on pods, on their template, or on the Job that makes them.

The gang consists of the pods of one controller. The Jobs of a JobSet are parts of it, so their pods are one gang. Pods without a
controller, or of several, are joined by `drayman.dev/gang-name`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from drayman.api.core import Pod
from drayman.api.meta import OwnerReference
from drayman.placement.gangs import levels, time_limits
from drayman.placement.gangs.declaring import Declaration, combined
from drayman.placement.gangs.gang import Dialect, Flaw, Gang, GangKey, InvalidGangError
from drayman.placement.gangs.statements import Statements, field_of

LEAST: Final = "drayman.dev/gang"
NAME: Final = "drayman.dev/gang-name"
STATING: Final = frozenset({LEAST, levels.REQUIRED, levels.PREFERRED, levels.SLICE_SIZE})
"""Annotations of a pod or its owner that make a gang. With levels alone, each pod starts when it can."""
STATED: Final = STATING | time_limits.STATED | {NAME, levels.SLICE_LEVEL}
_JOB_SET: Final = "jobset.sigs.k8s.io/jobset-name"
_JOB_SET_UID: Final = "jobset.sigs.k8s.io/jobset-uid"
_SOURCES: Final = {
    "least": LEAST,
    "timeout_s": time_limits.TIMEOUT,
    "grace_s": time_limits.GRACE,
    "wish": levels.REQUIRED,
    "slices": levels.SLICE_SIZE,
}


def key_of(pod: Pod, owner: OwnerReference | None, statements: Statements) -> GangKey | None:
    """None for a pod that neither has a controller nor names a gang."""
    namespace, name = pod.metadata.namespace, statements.text(NAME)
    if name:
        return GangKey(Dialect.DRAYMAN, namespace, name)
    return None if owner is None else owned(Dialect.DRAYMAN, pod, owner)


def owned(dialect: Dialect, pod: Pod, owner: OwnerReference) -> GangKey:
    """The gang of an owner's pods."""
    namespace, labels = pod.metadata.namespace, pod.metadata.labels
    job_set = labels.get(_JOB_SET) if owner.kind == "Job" else None
    if job_set:
        name = f"jobset/{job_set}"
        return GangKey(dialect, namespace, name, labels.get(_JOB_SET_UID) or name)
    return GangKey(dialect, namespace, f"{owner.kind.lower()}/{owner.name}", owner.uid)


def declared_by(statements: Statements) -> Declaration:
    """Raises InvalidGangError."""
    return Declaration(
        least=statements.count(LEAST) or 0,
        timeout_s=time_limits.timeout_of(statements),
        grace_s=time_limits.grace_of(statements),
        wish=levels.wish_of(statements),
        slices=levels.slices_of(statements),
    )


def alone(pod: Pod, statements: Statements) -> tuple[GangKey, Flaw] | None:
    """For a pod that states a gang and does not say which: None if the pod by itself is all of it."""
    key = GangKey(
        Dialect.DRAYMAN, pod.metadata.namespace, f"pod/{pod.metadata.name}", pod.metadata.uid
    )
    try:
        declared = declared_by(statements)
        if declared.least <= 1:
            return None
        raise InvalidGangError(
            field_of(NAME),
            f"is required: {declared.least} pods are to start together, and the pod has no controller",
        )
    except InvalidGangError as error:
        return key, statements.flaw(key, error)


def gang_of(key: GangKey, stated: Collection[Declaration | Flaw]) -> Gang | Flaw:
    return combined(key, stated, _SOURCES)
