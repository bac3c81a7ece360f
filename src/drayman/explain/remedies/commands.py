"""Operations as commands for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from drayman.api.codec import encode_json
from drayman.api.core import Pod
from drayman.explain.answer import Operation

_RESOURCES: Final = {"Workload": "workloads.kueue.x-k8s.io"}
"""Names for kubectl of kinds whose short name means a kind of another group: scheduling.k8s.io has Workloads, too."""


def patch_command(operation: Operation) -> str:
    text = encode_json([dict(step) for step in operation.patch]).decode()
    resource = _RESOURCES.get(operation.kind, operation.kind.lower())
    return (
        f"kubectl patch {resource} {operation.name}{_namespace(operation.namespace)}"
        f" --type=json -p {shlex.quote(text)}"
    )


def delete_commands(pods: Iterable[Pod]) -> Iterator[str]:
    """One for each namespace."""
    ordered = sorted(pods, key=lambda pod: (pod.metadata.namespace, pod.metadata.name))
    for namespace, group in groupby(ordered, key=lambda pod: pod.metadata.namespace):
        names = " ".join(pod.metadata.name for pod in group)
        yield f"kubectl delete pod {names}{_namespace(namespace)}"


def wait_command(kind: str, name: str, namespace: str, condition: str) -> str:
    return (
        f"kubectl wait --for={condition} {kind.lower()}/{name}{_namespace(namespace)} --timeout=-1s"
    )


def _namespace(namespace: str) -> str:
    return f" -n {namespace}" if namespace else ""
