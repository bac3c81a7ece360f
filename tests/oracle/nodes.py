"""Does a slice, or a device, select the node?"""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]


def selects(scope: JsonObject, node: JsonObject) -> bool:
    """Whether `nodeName`, `allNodes` or `nodeSelector` of a slice spec or device names the node."""
    if scope.get("nodeName"):
        return bool(scope["nodeName"] == node["metadata"]["name"])
    if scope.get("allNodes"):
        return True
    selector = scope.get("nodeSelector")
    return selector is not None and any(
        _term_matches(term, node) for term in selector.get("nodeSelectorTerms") or []
    )


def _term_matches(term: JsonObject, node: JsonObject) -> bool:
    labels = node["metadata"].get("labels") or {}
    fields = {"metadata.name": node["metadata"]["name"]}
    expressions = term.get("matchExpressions") or []
    on_fields = term.get("matchFields") or []
    if not expressions and not on_fields:
        return False
    return all(_holds(r, labels) for r in expressions) and all(_holds(r, fields) for r in on_fields)


def _holds(requirement: JsonObject, labels: dict[str, str]) -> bool:
    value = labels.get(requirement["key"])
    wanted = requirement.get("values") or []
    match requirement["operator"]:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(wanted[0])
        case "Lt":
            return value is not None and int(value) < int(wanted[0])
        case operator:
            raise ValueError(f"unknown operator {operator}")
