"""The labels, annotations and conditions of work that is handed to other clusters."""

from __future__ import annotations

import hashlib
from typing import Final

from drayman.api import codec
from drayman.api.struct import Json
from drayman.workloads.queued.kinds import QueuedKind
from drayman.workloads.queued.places import Object, Path, read

CONTROLLER: Final = "kueue.x-k8s.io/multikueue"
"""What checks name as their controller, and jobs in `managedBy`."""
ORIGIN: Final = "kueue.x-k8s.io/multikueue-origin"
"""Label of everything that is copied to a worker: who copied it."""
DEFAULT_ORIGIN: Final = "multikueue"
CONTENT: Final = "drayman.dev/content"
"""Annotation of copies: a hash of what was copied."""
COPY_OF: Final = "drayman.dev/copy-of"
"""Annotation of copies: the uid of the original."""
CONFIG_KIND: Final = "MultiKueueConfig"


def content_of(value: Json) -> str:
    """A hash of what an object says, which is the same for equal contents."""
    return hashlib.sha256(codec.encode_json(_sorted(value))).hexdigest()[:32]


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    if isinstance(value, list | tuple):
        return [_sorted(each) for each in value]
    return value


def manager_path(kind: QueuedKind) -> Path:
    """Where an object says which controller runs it: beside the member that suspends it."""
    return (*kind.suspend[:-1], "managedBy")


def is_left_to_dispatcher(kind: QueuedKind, obj: Object) -> bool:
    """Whether the controller of its kind leaves an object alone, so that its status can be that of its copy."""
    return bool(read(obj, manager_path(kind)) == CONTROLLER)


def leave_to_dispatcher(kind: QueuedKind, obj: Object) -> None:
    """Have a new object be run elsewhere, unless it names who runs it."""
    part: Json = obj
    for name in manager_path(kind)[:-1]:
        part = part.setdefault(name, {})
    part.setdefault("managedBy", CONTROLLER)
