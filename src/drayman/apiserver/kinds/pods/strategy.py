"""The rules of pods, put together for each endpoint a pod can be written through."""

from __future__ import annotations

from typing import ClassVar, Final

from drayman.api.pods import FINISHED
from drayman.api.struct import Json
from drayman.api.validation import FieldError
from drayman.api.validation.field_errors import forbidden
from drayman.api.validation.metadata import check_metadata, check_metadata_update
from drayman.apiserver.kinds.own_annotations import warnings_about_pod
from drayman.apiserver.kinds.pods.defaults import default_pod, default_pod_status
from drayman.apiserver.kinds.pods.gpu_share import request_gpu_share
from drayman.apiserver.kinds.pods.label_keys import merge_label_keys
from drayman.apiserver.kinds.pods.quality import quality_class
from drayman.apiserver.kinds.pods.spec import check_alignment, check_new_pod, check_pod
from drayman.apiserver.kinds.pods.spending import check_spending
from drayman.apiserver.kinds.pods.status import check_pod_status
from drayman.apiserver.kinds.pods.updating import (
    check_ephemeral_update,
    check_pod_update,
    check_resize,
)
from drayman.apiserver.kinds.reading import at, items_at, map_at, member, text_at
from drayman.apiserver.kinds.rules import Errors, StatusRules, metadata_of
from drayman.apiserver.served.recurring import Recurring, RecurringChange
from drayman.apiserver.served.strategy import Context, Object, Strategy, restore

_QUICK_STATUS: Final = (
    *("conditions", "phase", "message", "reason", "nominatedNodeName", "startTime"),
    *("hostIP", "hostIPs", "podIP", "podIPs", "initContainerStatuses", "containerStatuses"),
    *("resourceClaimStatuses", "extendedResourceClaimStatus"),
    "nodeAllocatableResourceClaimStatuses",
)
"""The parts of a pod's status that schedulers, kubelets and controllers write all the time."""
_GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"
_DEFAULT_GRACE_S: Final = 30

_defaults: Final = RecurringChange()
_qualities: Final[Recurring[str]] = Recurring()
_warnings: Final[Recurring[list[str]]] = Recurring()


class PodStrategy(Strategy):
    """Pods through the main endpoint."""

    graceful = True

    def default(self, obj: Object, context: Context) -> None:
        obj["spec"] = _defaults.changed(member(obj, "spec"), _defaulted)
        default_pod_status(obj)

    def prepare_for_create(self, obj: Object, context: Context) -> None:
        obj["status"] = status = {
            "phase": "Pending",
            "qosClass": _qualities.of(obj["spec"], quality_class),
        }
        if items_at(obj, "spec", "schedulingGates"):
            status["conditions"] = [_gated_condition(context)]  # type: ignore[assignment]
        merge_label_keys(obj)
        request_gpu_share(obj)

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        restore(new, old, "status")
        # Ephemeral containers have their own endpoint.
        restore(member(new, "spec"), old["spec"], "ephemeralContainers")

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        return [
            *check_metadata(metadata_of(obj), namespaced=True),
            *check_new_pod(obj),
            *check_alignment(obj),
            *check_spending(map_at(obj, "metadata"), "metadata"),
            *_only_on_create(obj),
        ]

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        return [*_unconditional(new, old), *check_pod_update(new, old)]

    def warnings(self, new: Object, old: Object | None, context: Context) -> list[str]:
        if old is not None:
            return []
        about_spec = _warnings.of(map_at(new, "spec"), lambda spec: pod_warnings(spec, "spec"))
        return [*about_spec, *warnings_about_pod(map_at(new, "metadata"))]

    def grace_seconds(self, obj: Object, asked: int | None, context: Context) -> int:
        """A pod that is not running needs no grace period."""
        if not text_at(obj, "spec", "nodeName") or text_at(obj, "status", "phase") in FINISHED:
            return 0
        own = at(obj, "spec", "terminationGracePeriodSeconds")
        seconds = own if asked is None else asked
        seconds = _DEFAULT_GRACE_S if seconds is None else seconds
        return 1 if seconds < 0 else int(seconds)


def _defaulted(spec: Object) -> Object:
    default_pod({"spec": spec})
    return spec


def _only_on_create(obj: Object) -> Errors:
    if items_at(obj, "spec", "ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if text_at(obj, "spec", "nodeName") and items_at(obj, "spec", "schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield forbidden("spec.nodeName", detail)


def _unconditional(new: Object, old: Object) -> Errors:
    """What is checked on every update of a pod's spec."""
    yield from check_metadata_update(metadata_of(new), metadata_of(old))
    yield from check_metadata(metadata_of(new), namespaced=True)
    yield from check_pod(new)


def _gated_condition(context: Context) -> Object:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastTransitionTime": context.now,
        "reason": "SchedulingGated",
        "message": _GATED,
    }


class EphemeralContainersStrategy(Strategy):
    """Only the ephemeral containers change."""

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        containers = at(new, "spec", "ephemeralContainers")
        for name in list(new):
            if name != "metadata":
                restore(new, old, name)
        new["spec"] = dict(old["spec"])
        if containers:
            new["spec"]["ephemeralContainers"] = containers
        else:
            new["spec"].pop("ephemeralContainers", None)

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        return [*_unconditional(new, old), *check_ephemeral_update(new, old)]


class ResizeStrategy(Strategy):
    """Only the resources of containers and their resize policies change."""

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        asked = map_at(new, "spec")
        if not _same_containers(asked, old["spec"]):
            # Left as it is for the checks to refuse.
            restore(new, old, "status")
            return
        for name in list(new):
            if name != "metadata":
                restore(new, old, name)
        spec = new["spec"] = dict(old["spec"])
        restore(spec, asked, "resources")
        for name in ("containers", "initContainers"):
            if name in spec:
                spec[name] = [_resized(*pair) for pair in zip(spec[name], asked[name], strict=True)]

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        return [*_unconditional(new, old), *check_resize(new, old)]


def _same_containers(new: Object, old: Object) -> bool:
    return all(
        [text_at(item, "name") for item in items_at(new, kind)]
        == [text_at(item, "name") for item in items_at(old, kind)]
        for kind in ("containers", "initContainers")
    )


def _resized(container: Object, asked: Object) -> Object:
    resized = dict(container)
    for name in ("resources", "resizePolicy"):
        restore(resized, asked, name)
    return resized


class PodStatusStrategy(StatusRules):
    """The status of pods. Labels and annotations can be written with it, owners cannot."""

    reset_fields: ClassVar = (
        ("spec",),
        ("metadata", "deletionTimestamp"),
        ("metadata", "ownerReferences"),
    )
    keeps_metadata: ClassVar = ("ownerReferences", "deletionTimestamp")
    quick_parts: ClassVar = frozenset(("status", name) for name in _QUICK_STATUS)

    def settle_parts(self, new: Object, old: Object, context: Context) -> bool:
        default_pod_status(new)
        _keep_generations(new["status"], map_at(old, "status"))
        return not any(check_pod_status(new, old, context))

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        super().prepare_for_update(new, old, context)
        status, before = member(new, "status"), map_at(old, "status")
        for name in ("qosClass", "observedGeneration"):
            if not status.get(name):
                restore(status, before, name)
        _keep_generations(status, before)


def _keep_generations(status: Object, before: Object) -> None:
    """Keep the observed generation of a condition if a client does not know the field."""
    if not before.get("conditions") or not status.get("conditions"):
        return
    known: dict[str, list[Json]] = {}
    for condition in items_at(before, "conditions"):
        known.setdefault(text_at(condition, "type"), []).append(condition)
    for condition in items_at(status, "conditions"):
        earlier = known.get(text_at(condition, "type"))
        was = earlier.pop(0).get("observedGeneration") if earlier else None
        if was and not condition.get("observedGeneration"):
            condition["observedGeneration"] = was


POD_STATUS: Final = PodStatusStrategy(update_checks=check_pod_status)


def pod_warnings(spec: Object, path: str) -> list[str]:
    """What is allowed in a pod but probably a mistake."""
    found = []
    for index, item in enumerate(items_at(spec, "topologySpreadConstraints")):
        if at(item, "labelSelector") is None:
            place = f"{path}.topologySpreadConstraints[{index}].labelSelector"
            found.append(f"{place}: a null labelSelector results in matching no pod")
    for name in ("initContainers", "containers"):
        for index, container in enumerate(items_at(spec, name)):
            found += _repeated_variables(container, f"{path}.{name}[{index}]")
    return found


def _repeated_variables(container: Object, path: str) -> list[str]:
    found, seen = [], set()
    for index, variable in enumerate(items_at(container, "env")):
        name = text_at(variable, "name")
        if name in seen:
            found.append(
                f'{path}.env[{index}]: hides previous definition of "{name}", which may be dropped when using apply'
            )
        seen.add(name)
    return found
