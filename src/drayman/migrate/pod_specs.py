"""Where the kinds that make pods have the pod's specification."""

from __future__ import annotations

from typing import Final

from drayman.migrate.shapes import Object, Path, group_and_version, text

_TEMPLATE: Final[Path] = ("spec", "template", "spec")
_PLACES: Final[dict[tuple[str, str], Path]] = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template", "spec"),
    ("", "ReplicationController"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
    ("batch", "Job"): _TEMPLATE,
}


def pod_spec_of(value: Object) -> Path | None:
    """The path of the pod specification in an object; None for a kind that makes no pods."""
    group, _ = group_and_version(value)
    return _PLACES.get((group, text(value, "kind")))
