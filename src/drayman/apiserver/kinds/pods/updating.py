"""What may change in a pod once it exists: little, and less still once it runs."""

from __future__ import annotations

from copy import copy
from typing import Final

from drayman.api.alignment import ALIGN
from drayman.api.pod_security import APP_ARMOR
from drayman.api.validation.alignment import check_pod_annotation
from drayman.api.validation.field_errors import forbidden, invalid, required
from drayman.api.validation.pod import MIRROR_ANNOTATION
from drayman.apiserver.kinds.checks import MAX_INT32
from drayman.apiserver.kinds.pods.quality import quality_class
from drayman.apiserver.kinds.pods.resources import COMPUTE
from drayman.apiserver.kinds.pods.scheduling import without_seconds
from drayman.apiserver.kinds.pods.spec import claim_entries
from drayman.apiserver.kinds.pods.spending import check_spending
from drayman.apiserver.kinds.reading import at, each_at, items_at, map_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Object, restore

_NO_FIELD: Final = "[]"
_CHANGEABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_TERMS: Final = ("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")


def check_pod_update(new: Object, old: Object) -> Errors:
    """Changes through the main endpoint."""
    after, before = map_at(new, "spec"), map_at(old, "spec")
    yield from check_annotation_changes(new, old)
    yield from check_spending(map_at(new, "metadata"), "metadata", map_at(old, "metadata"))
    if after == before:
        return
    for name in ("containers", "initContainers"):
        if len(items_at(after, name)) != len(items_at(before, name)):
            yield forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
        yield from _images(after, name)
    problems = list(_deadline(after, before))
    yield from problems
    if problems and after.get("activeDeadlineSeconds") is not None:
        return
    yield from _tolerations(after, before)
    yield from _gates(after, before)
    yield from _everything_else(after, before)


def check_annotation_changes(new: Object, old: Object) -> Errors:
    after, before = map_at(new, "metadata", "annotations"), map_at(old, "metadata", "annotations")
    if ALIGN in after:
        entries = claim_entries(map_at(old, "spec"))
        yield from check_pod_annotation(after, "metadata.annotations", entries, before)
    for key in {**before, **after}:
        if after.get(key) == before.get(key):
            continue
        change = "remove or update" if key in before else "add"
        if key == MIRROR_ANNOTATION:
            yield forbidden(
                f"metadata.annotations[{key}]", f"may not {change} mirror pod annotation"
            )
        elif key.startswith(APP_ARMOR):
            yield forbidden(
                f"metadata.annotations[{key}]", f"may not {change} AppArmor annotations"
            )


def _images(spec: Object, name: str) -> Errors:
    for where, container in each_at(spec, "spec", name):
        image = text_at(container, "image")
        if not image:
            yield required(f"{where}.image")
        if image != image.strip():
            yield invalid(f"{where}.image", image, "must not have leading or trailing whitespace")


def _deadline(after: Object, before: Object) -> Errors:
    path = "spec.activeDeadlineSeconds"
    new, old = after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if new is None:
        if old is not None:
            yield invalid(path, None, "must not update from a positive integer to nil value")
    elif not 0 <= new <= MAX_INT32:
        yield invalid(path, new, f"must be between 0 and {MAX_INT32}, inclusive")
    elif old is not None and old < new:
        yield invalid(path, new, "must be less than or equal to previous value")


def _tolerations(after: Object, before: Object) -> Errors:
    kept = {without_seconds(toleration) for toleration in items_at(after, "tolerations")}
    if any(without_seconds(old) not in kept for old in items_at(before, "tolerations")):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden("spec.tolerations", detail)


def _gates(after: Object, before: Object) -> Errors:
    known = {text_at(gate, "name") for gate in items_at(before, "schedulingGates")}
    for where, gate in each_at(after, "spec", "schedulingGates"):
        if (name := text_at(gate, "name")) not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield forbidden(f"{where}.name", detail)


def _everything_else(after: Object, before: Object) -> Errors:
    """The rest must be as it was."""
    rest = dict(after)
    for name in ("containers", "initContainers"):
        if name in after:
            rest[name] = [
                {**container, "image": old.get("image")}
                for container, old in zip(after[name], before[name], strict=True)
            ]
    for name in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        restore(rest, before, name)
    grace = before.get("terminationGracePeriodSeconds") or 0
    if grace < 0 and rest.get("terminationGracePeriodSeconds") == 1:
        rest["terminationGracePeriodSeconds"] = grace
    if before.get("schedulingGates"):
        yield from _narrowing(rest, before)
    if rest != before:
        yield forbidden("spec", _CHANGEABLE)


def _narrowing(rest: Object, before: Object) -> Errors:
    """While gates hold a pod back, its node selection may become narrower."""
    new, old = map_at(rest, "nodeSelector"), map_at(before, "nodeSelector")
    if any(new.get(key) != value for key, value in old.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid("spec.nodeSelector", new, detail)
    restore(rest, before, "nodeSelector")
    yield from _narrower_affinity(rest, before)
    affinity = copy(map_at(rest, "affinity"))
    restore(affinity, map_at(before, "affinity"), "nodeAffinity")
    if affinity or "affinity" in before:
        rest["affinity"] = affinity
    else:
        rest.pop("affinity", None)


def _narrower_affinity(rest: Object, before: Object) -> Errors:
    new = at(rest, "affinity", "nodeAffinity")
    old = at(before, "affinity", "nodeAffinity")
    old_terms = items_at(old, *_TERMS)
    if new == old or not old_terms:
        return
    new_terms = items_at(new, *_TERMS)
    path = f"spec.affinity.nodeAffinity.{'.'.join(_TERMS)}"
    if len(new_terms) != len(old_terms):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield invalid(path, new_terms, detail)
        return
    for index, (term, before_term) in enumerate(zip(new_terms, old_terms, strict=True)):
        if not _only_adds(term, before_term):
            detail = "only additions are allowed (no mutations or deletions)"
            yield invalid(f"{path}[{index}]", term, detail)


def _only_adds(new: Object, old: Object) -> bool:
    if not items_at(old, "matchExpressions") and not items_at(old, "matchFields"):
        # A term without requirements matches nothing; with some it would match more.
        return new == old
    return all(
        items_at(new, name)[: len(items_at(old, name))] == items_at(old, name)
        for name in ("matchExpressions", "matchFields")
    )


def check_ephemeral_update(new: Object, old: Object) -> Errors:
    """Ephemeral containers can be added; existing ones stay as they are."""
    yield from check_annotation_changes(new, old)
    if MIRROR_ANNOTATION in map_at(old, "metadata", "annotations"):
        yield forbidden(_NO_FIELD, "static pods do not support ephemeral containers")
        return
    path = "spec.ephemeralContainers"
    now = {text_at(item, "name"): item for item in items_at(new, "spec", "ephemeralContainers")}
    for container in items_at(old, "spec", "ephemeralContainers"):
        name = text_at(container, "name")
        if name not in now:
            detail = f'existing ephemeral containers "{name}" may not be removed\n'
            yield forbidden(path, detail)
        elif now[name] != container:
            yield forbidden(path, f'existing ephemeral containers "{name}" may not be changed\n')


def check_resize(new: Object, old: Object) -> Errors:
    """Amounts of CPU and memory may change, as long as the pod keeps its quality of service."""
    if MIRROR_ANNOTATION in map_at(old, "metadata", "annotations"):
        yield forbidden(_NO_FIELD, "static pods cannot be resized")
        return
    after, before = map_at(new, "spec"), map_at(old, "spec")
    if text_at(before, "os", "name") == "windows":
        yield forbidden(_NO_FIELD, "windows pods cannot be resized")
        return
    if quality_class(after) != quality_class(before):
        detail = "Pod QOS Class may not change as a result of resizing"
        yield invalid("spec", text_at(new, "status", "qosClass"), detail)
    if items_at(old, "status", "nodeAllocatableResourceClaimStatuses"):
        detail = "pods with node allocatable resource claims cannot be resized"
        yield forbidden("spec", detail)
    yield from _resized_pod(after, before)
    order = list(_same_order(after, before))
    yield from order
    if order:
        return
    for name in ("containers", "initContainers"):
        for (where, container), was in zip(
            each_at(after, "spec", name), items_at(before, name), strict=True
        ):
            place = "spec" if name == "containers" else where
            yield from _resized(container, was, f"{where}.resources", place)


def _same_order(after: Object, before: Object) -> Errors:
    for name in ("containers", "initContainers"):
        new, old = items_at(after, name), items_at(before, name)
        if len(new) != len(old):
            yield forbidden(f"spec.{name}", f"{name} may not be added or removed on resize")
            continue
        for index, (container, was) in enumerate(zip(new, old, strict=True)):
            if text_at(container, "name") != text_at(was, "name"):
                detail = f"{name} may not be renamed or reordered on resize"
                yield forbidden(f"spec.{name}[{index}].name", detail)


def _resized_pod(after: Object, before: Object) -> Errors:
    """The pod-level resources."""
    if not (after.get("resources") or before.get("resources")):
        return
    if before.get("resources") and not after.get("resources"):
        yield forbidden("spec.resources", "pod-level resources cannot be removed")
        return
    for amounts in ("requests", "limits"):
        new, old = map_at(after, "resources", amounts), map_at(before, "resources", amounts)
        if old.keys() - new.keys():
            detail = f"pod-level resource {amounts} cannot be removed"
            yield forbidden(f"spec.resources.{amounts}", detail)
        if _others(new) != _others(old):
            yield forbidden("spec", "only cpu and memory resources are mutable at pod-level")


def _resized(container: Object, was: Object, path: str, place: str) -> Errors:
    for amounts in ("requests", "limits"):
        new = map_at(container, "resources", amounts)
        old = map_at(was, "resources", amounts)
        if old.keys() - new.keys():
            yield forbidden(f"{path}.{amounts}", f"resource {amounts} cannot be removed")
        if _others(new) != _others(old):
            yield forbidden(place, "only cpu and memory resources are mutable")
    if container.get("resizePolicy") != was.get("resizePolicy"):
        yield forbidden(place, "only cpu and memory resources are mutable")


def _others(amounts: Object) -> Object:
    return {name: amount for name, amount in amounts.items() if name not in COMPUTE}
