"""What the server knows about Kueue's kinds beyond their definitions: conversion between versions, and the rules of Kueue's webhooks.

It holds whichever definitions are installed, ours or those that Kueue ships, which leave both to a webhook that does not run here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from drayman.api.custom_groups import KUEUE
from drayman.api.validation.field_errors import FieldError
from drayman.apiserver.extensions.known import KnownKind
from drayman.apiserver.extensions.kueue.conversion import NEW, OLD, STEPS
from drayman.apiserver.extensions.kueue.queue_checks import (
    check_errors,
    cluster_queue_errors,
    cohort_errors,
    flavor_errors,
    former_names,
    local_queue_errors,
    remote_cluster_errors,
)
from drayman.apiserver.extensions.kueue.workload_checks import (
    workload_errors,
    workload_update_errors,
)
from drayman.apiserver.served.strategy import Object

Check = Callable[[Object], Iterator[FieldError]]

_CHECKS: Final[Mapping[str, Check]] = {
    "resourceflavors": flavor_errors,
    "clusterqueues": cluster_queue_errors,
    "cohorts": cohort_errors,
    "localqueues": local_queue_errors,
    "admissionchecks": check_errors,
    "multikueueclusters": remote_cluster_errors,
    "workloads": workload_errors,
}


def _known(plural: str) -> KnownKind:
    check = _CHECKS.get(plural)

    def errors(obj: Object) -> Iterator[FieldError]:
        yield from former_names(plural, obj)
        if check is not None:
            yield from check(obj)

    forward, back = STEPS.get(plural, (None, None))
    return KnownKind(
        hub=NEW,
        to_hub={} if forward is None else {OLD: forward},
        from_hub={} if back is None else {OLD: back},
        errors=errors,
        update_errors=workload_update_errors if plural == "workloads" else None,
    )


KUEUE_KINDS: Final[Mapping[str, KnownKind]] = {
    f"{plural}.{KUEUE}": _known(plural) for plural in {**_CHECKS, **STEPS}
}
"""By the names of their definitions."""
