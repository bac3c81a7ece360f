"""How a pod chooses its node by the devices there, and which of those choices move into the requests for devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drayman.migrate.model import Scope
from drayman.migrate.node_labels import LabelMeaning, is_about_devices, meaning_of
from drayman.migrate.shapes import Object, changed, child, numbered, objects, text, without
from drayman.migrate.vendors import NVIDIA, NVIDIA_MIG

_REQUIRED: Final = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
_STAYS: Final = "stays on the pod: no attribute of the driver is equivalent"

Selectors = dict[str, list[str]]
"""For each class, the selectors that its requests get."""


def move_labels(
    spec: Object, path: str, classes: set[str], scope: Scope
) -> tuple[Object, Selectors]:
    """The pod without the choices that its requests now make, and the selectors for those requests."""
    moved: Selectors = {}

    def take(meaning: LabelMeaning | None, label: str, where: str) -> bool:
        """Whether a label goes into the requests."""
        concerned = classes & set(meaning.classes) if meaning else set()
        if meaning is None or not concerned or not _covers(meaning, classes):
            if is_about_devices(label):
                scope.note(where, _STAYS)
            return False
        for name in concerned:
            selectors = moved.setdefault(name, [])
            if meaning.expression and meaning.expression not in selectors:
                selectors.append(meaning.expression)
        return True

    spec = _from_node_selector(spec, path, take)
    return _from_affinity(spec, path, take, scope), moved


def _covers(meaning: LabelMeaning, classes: set[str]) -> bool:
    """Whether a label says something about all requests that are for devices of its vendor."""
    return (
        NVIDIA_MIG not in classes or NVIDIA not in meaning.classes or NVIDIA_MIG in meaning.classes
    )


def _from_node_selector(spec: Object, path: str, take: Callable[..., bool]) -> Object:
    labels = child(spec, "nodeSelector")
    gone = [
        label
        for label, value in labels.items()
        if take(meaning_of(label, str(value)), label, f"{path}.nodeSelector[{label}]")
    ]
    left = without(labels, *gone)
    if not gone:
        return spec
    return {**spec, "nodeSelector": left} if left else without(spec, "nodeSelector")


def _from_affinity(spec: Object, path: str, take: Callable[..., bool], scope: Scope) -> Object:
    """One term is a condition on the node. Several are alternatives, which a device selector cannot express."""
    where = ".".join((path, *_REQUIRED, "nodeSelectorTerms"))
    terms = objects(spec, *_REQUIRED, "nodeSelectorTerms")
    if len(terms) != 1:
        labels = {text(each, "key") for term in terms for each in objects(term, "matchExpressions")}
        if any(is_about_devices(label) for label in labels):
            scope.note(where, "stays on the pod: it has several alternatives")
        return spec
    gone = [
        place
        for place, each in numbered(terms[0], "matchExpressions")
        if take(_meaning(each), text(each, "key"), f"{where}[0].matchExpressions[{place}]")
    ]
    if not gone:
        return spec
    expressions = terms[0].get("matchExpressions")
    assert isinstance(expressions, list)
    left = [each for place, each in enumerate(expressions) if place not in gone]
    return _with_term(
        spec,
        {**terms[0], "matchExpressions": left} if left else without(terms[0], "matchExpressions"),
    )


def _meaning(expression: Object) -> LabelMeaning | None:
    """What a condition on a label says about devices."""
    label, operator = text(expression, "key"), text(expression, "operator")
    values = expression.get("values")
    if operator == "Exists":
        return meaning_of(label, "true") if label == "nvidia.com/gpu.present" else None
    if operator not in ("In", "NotIn") or not isinstance(values, list) or not values:
        return None
    meanings = [meaning_of(label, str(value)) for value in values]
    first = meanings[0]
    if first is None or any(each is None or not each.expression for each in meanings):
        return first if len(meanings) == 1 and operator == "In" else None
    any_of = " || ".join(each.expression for each in meanings if each)
    if operator == "NotIn":
        return LabelMeaning(first.classes, f"!({any_of})")
    return LabelMeaning(first.classes, any_of)


def _with_term(spec: Object, term: Object) -> Object:
    """The pod with another term; what would then be empty is removed."""
    if term:
        return changed(spec, _REQUIRED, lambda required: {**required, "nodeSelectorTerms": [term]})
    affinity = child(spec, "affinity")
    of_nodes = without(child(affinity, "nodeAffinity"), _REQUIRED[-1])
    affinity = (
        {**affinity, "nodeAffinity": of_nodes} if of_nodes else without(affinity, "nodeAffinity")
    )
    return {**spec, "affinity": affinity} if affinity else without(spec, "affinity")
