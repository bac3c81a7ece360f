"""Label keys whose values a pod's selectors take from the pod itself.

They are written into the selectors once, when the pod is made: labels that change later do not move it to another group.
"""

from __future__ import annotations

from collections.abc import Iterator

from drayman.api.struct import Json
from drayman.apiserver.kinds.reading import at, items_at, map_at
from drayman.apiserver.served.strategy import Object

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def merge_label_keys(pod: Object) -> None:
    """Extend the selectors of a new pod with the values of its own labels."""
    spec = pod["spec"]
    labels = map_at(pod, "metadata", "labels")
    if not labels or not (spec.get("affinity") or spec.get("topologySpreadConstraints")):
        return
    for term in _terms(spec):
        selector = at(term, "labelSelector")
        if isinstance(selector, dict):
            added = [
                {"key": key, "operator": operator, "values": [labels[key]]}
                for name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
                for key in items_at(term, name)
                if key in labels
            ]
            if added:
                selector["matchExpressions"] = [*items_at(selector, "matchExpressions"), *added]


def _terms(spec: Object) -> Iterator[Json]:
    yield from items_at(spec, "topologySpreadConstraints")
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from items_at(spec, "affinity", kind, _REQUIRED)
        for preferred in items_at(spec, "affinity", kind, _PREFERRED):
            yield at(preferred, "podAffinityTerm")
