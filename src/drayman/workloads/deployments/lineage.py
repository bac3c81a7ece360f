"""The replica sets of a deployment: which is of its present template, which revision each is, what its annotations say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from drayman.api import codec
from drayman.api.integers import parse_integer
from drayman.api.struct import Json
from drayman.api.workloads import Deployment, ReplicaSet
from drayman.workloads.deployments.sizes import DESIRED, MOST, limits_of
from drayman.workloads.pod_bodies import owner_reference
from drayman.workloads.template_hash import LABEL, template_hash, without_hash

REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
_OWN: Final = {
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    HISTORY,
    DESIRED,
    MOST,
}
"""Annotations that say something about the deployment itself, and are not handed on."""
_LONGEST_HISTORY: Final = 2000


def find_new(deployment: Deployment, sets: Iterable[ReplicaSet]) -> ReplicaSet | None:
    """The replica set of the present template; the oldest, should there be several."""
    wanted = without_hash(deployment.spec.template)
    for replica_set in by_age(sets):
        if without_hash(replica_set.spec.template) == wanted:
            return replica_set
    return None


def by_age(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The oldest first."""
    return sorted(sets, key=lambda s: (s.metadata.creation_timestamp or "", s.metadata.name))


def revision_of(replica_set: ReplicaSet) -> int:
    text = replica_set.metadata.annotations.get(REVISION, "")
    return parse_integer(text) or 0


def next_revision(old: Iterable[ReplicaSet]) -> int:
    return max(map(revision_of, old), default=0) + 1


def size_annotations(deployment: Deployment) -> dict[str, str]:
    """What a replica set records about its deployment, so that a change of its size is noticed."""
    replicas = deployment.spec.replicas
    return {DESIRED: str(replicas), MOST: str(replicas + limits_of(deployment).surge)}


def annotations_of_new(
    deployment: Deployment, new: ReplicaSet | None, revision: int
) -> dict[str, str]:
    """The annotations of the replica set of the present template.

    One that is used again, such as after a rollback, keeps the revisions that it was before.
    """
    handed_on = {k: v for k, v in deployment.metadata.annotations.items() if k not in _OWN}
    if new is None:
        return {**handed_on, REVISION: str(revision), **size_annotations(deployment)}
    annotations = {**new.metadata.annotations, **handed_on}
    before = revision_of(new)
    if before < revision:
        annotations[REVISION] = str(revision)
        if before:
            annotations[HISTORY] = _history(annotations.get(HISTORY, ""), before)
    return annotations


def _history(text: str, revision: int) -> str:
    parts = [*(part for part in text.split(",") if part), str(revision)]
    while len(",".join(parts)) > _LONGEST_HISTORY:
        del parts[0]
    return ",".join(parts)


def new_replica_set(deployment: Deployment, revision: int, replicas: int) -> dict[str, Json]:
    """A replica set for the present template, named after it."""
    template = deployment.spec.template
    name_of_template = template_hash(template, deployment.status.collision_count)
    metadata = dict(template.get("metadata") or {})
    labels = {**(metadata.get("labels") or {}), LABEL: name_of_template}
    selector = codec.to_dict(deployment.spec.selector)
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), LABEL: name_of_template}
    spec: dict[str, Json] = {
        "replicas": replicas,
        "selector": selector,
        "template": {**template, "metadata": {**metadata, "labels": labels}},
    }
    if deployment.spec.min_ready_seconds:
        spec["minReadySeconds"] = deployment.spec.min_ready_seconds
    return {
        "metadata": {
            "name": f"{deployment.metadata.name}-{name_of_template}",
            "namespace": deployment.metadata.namespace,
            "labels": labels,
            "annotations": annotations_of_new(deployment, None, revision),
            "ownerReferences": [codec.to_dict(owner_reference(deployment))],
        },
        "spec": spec,
    }


def expired(deployment: Deployment, old: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Old replica sets beyond the history that is kept, as far as they are empty."""
    limit = deployment.spec.revision_history_limit
    alive = [s for s in old if s.metadata.deletion_timestamp is None]
    if limit is None or len(alive) <= limit:
        return []
    surplus = sorted(alive, key=revision_of)[: len(alive) - limit]
    return [
        s
        for s in surplus
        if not s.status.replicas
        and not s.spec.replicas
        and s.metadata.generation <= s.status.observed_generation
    ]
