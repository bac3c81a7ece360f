"""The templates that a stateful set or a daemon set has and had, kept as ControllerRevisions.

Pods say by a label which revision they were made from. `kubectl rollout undo` reads an earlier revision and writes it back as the template.
That revision then becomes the newest one again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.struct import Json
from drayman.api.workloads import ControllerRevision, DaemonSet, StatefulSet
from drayman.workloads.pod_bodies import owner_reference
from drayman.workloads.template_hash import template_hash

HASH: Final = "controller.kubernetes.io/hash"
POD_LABEL: Final = "controller-revision-hash"
Revised = StatefulSet | DaemonSet
"""What keeps revisions of its template."""


def revision_hash(owner: Revised, collisions: int | None) -> str:
    """What identifies the revision of the present template."""
    return template_hash(template_data(owner), collisions)


def revision_name(owner: Revised, hash_: str) -> str:
    return f"{owner.metadata.name}-{hash_}"


def revision_of(pod: Pod) -> str:
    """The revision that a pod was made from, as its label has it: a name for a stateful set, a hash for a daemon set."""
    return pod.metadata.labels.get(POD_LABEL, "")


def template_data(owner: Revised) -> Json:
    """What a revision keeps of a template: a patch that brings it back as a whole."""
    return {"spec": {"template": {**owner.spec.template, "$patch": "replace"}}}


def template_of(revision: ControllerRevision) -> dict[str, Json]:
    kept: dict[str, Json] = revision.data["spec"]["template"]
    return {name: value for name, value in kept.items() if name != "$patch"}


def new_revision(
    owner: Revised, labels: Mapping[str, str], collisions: int | None, number: int
) -> dict[str, Json]:
    """The revision of the present template, named after it."""
    hash_ = revision_hash(owner, collisions)
    return {
        "metadata": {
            "name": revision_name(owner, hash_),
            "namespace": owner.metadata.namespace,
            "labels": {**labels, HASH: hash_, POD_LABEL: hash_},
            "ownerReferences": [codec.to_dict(owner_reference(owner))],
        },
        "data": template_data(owner),
        "revision": number,
    }
