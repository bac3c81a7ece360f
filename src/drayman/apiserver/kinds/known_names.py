"""The labels and annotations of `kueue.x-k8s.io` and `drayman.dev` that somebody here reads, and what is said of others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from drayman.api.alignment import ALIGN
from drayman.node.simulated.model import EXIT_CODE, READY_AFTER, RUN_FOR
from drayman.placement.gangs.dialects import kueue as groups
from drayman.placement.gangs.dialects import own
from drayman.placement.min_runtime import MIN_RUNTIME
from drayman.placement.prices import COST, PRICE, SPOT
from drayman.placement.runs.declaring import RUNTIME
from drayman.quota.claims.records import CLAIMS
from drayman.quota.fitting.rooms import ROOM
from drayman.reasons.slips import similar
from drayman.workloads.dispatching.names import CONTENT, COPY_OF, ORIGIN
from drayman.workloads.queued import names

KUEUE: Final = "kueue.x-k8s.io/"
OWN: Final = "drayman.dev/"
LABELS_OF_PODS: Final = frozenset({COST, SPOT})
"""Annotations of pods that may be labels as well."""
OF_JOBS: Final = own.STATED | {MIN_RUNTIME, RUNTIME}
"""Annotations of `drayman.dev` that count for the pods of a Job when the Job has them."""
OF_PODS: Final = OF_JOBS | LABELS_OF_PODS | {ALIGN, RUN_FOR, EXIT_CODE, READY_AFTER}
"""Annotations of `drayman.dev` that pods may have."""
KNOWN: Final = (
    OF_PODS
    | names.LABELS_AND_ANNOTATIONS
    | groups.STATED
    | {groups.NAME, groups.INDEX, groups.POD_SET, ORIGIN, CONTENT, COPY_OF, ROOM, CLAIMS, PRICE}
)
"""All of them, whatever they are on."""
_AMONG_ALL: Final[Mapping[str, int]] = dict.fromkeys(sorted(KNOWN), 1)
_AMONG_THOSE_OF_PODS: Final[Mapping[str, int]] = dict.fromkeys(sorted(OF_PODS), 1)


def unread(field: str, name: str, meant: str) -> str:
    """What is said of a label or annotation that nobody reads."""
    return f"{field}[{name}]: nobody reads this{f'; did you mean {meant}?' if meant else ''}"


@lru_cache(maxsize=1 << 10)
def meant_by(name: str, *, is_of_pod: bool = False) -> str:
    """The names that this one may be a slip of, of all or of those that pods may have; empty if it looks like none."""
    known = _AMONG_THOSE_OF_PODS if is_of_pod else _AMONG_ALL
    return " or ".join(each for each, _ in similar(name, known))
