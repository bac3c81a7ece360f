"""The place of a pod in the order of its gang: what frameworks call its rank or index."""

from __future__ import annotations

from typing import Final

from drayman.api.core import Pod
from drayman.placement.gangs.gang import InvalidGangError

LABELS: Final = (
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "training.kubeflow.org/replica-index",
)
"""Labels that controllers give to pods with an index. A pod has one of them at most."""


def rank_of(pod: Pod, stated: str = "") -> int | None:
    """The rank that a label gives to a pod: the stated one, or else one that is known.

    Raises InvalidGangError where the stated label is not a number. A pod that does not have it has no rank.
    """
    labels = pod.metadata.labels
    if not labels:
        return None
    if stated:
        text = labels.get(stated)
        if text is not None and not _is_number(text):
            raise InvalidGangError(f"metadata.labels[{stated}]", f"{text!r} is not an index")
        return None if text is None else int(text)
    return next((int(text) for label in LABELS if _is_number(text := labels.get(label, ""))), None)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()
