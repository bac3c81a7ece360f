"""The parts of a pod that say where it may run: affinity, tolerations, spreading and gates."""

from __future__ import annotations

from collections import Counter
from typing import Final

from drayman.api import formats
from drayman.api.codec import convert
from drayman.api.core import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, NodeSelector
from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from drayman.api.validation.names import dns_label, label_key
from drayman.api.validation.node_selectors import check_node_selector
from drayman.apiserver.kinds.checks import label_selector, one_of, positive, supported
from drayman.apiserver.kinds.reading import at, each_at, items_at, map_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Object

TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS: Final = ("Equal", "Exists")
_ALL_OPERATORS: Final = (*_TOLERATION_OPERATORS, "Lt", "Gt")
"""Comparing numbers is not enabled, but listed among the choices in error messages."""
_UNSATISFIABLE: Final = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
_INCLUSION: Final = ("Honor", "Ignore")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_HEAVIEST: Final = 100
_ONE_TERM: Final = ".nodeSelectorTerms[0]"


def check_affinity(spec: Object, path: str) -> Errors:
    affinity, path = spec.get("affinity"), f"{path}.affinity"
    if isinstance(node := at(affinity, "nodeAffinity"), dict):
        yield from _node_affinity(node, f"{path}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        if isinstance(pods := at(affinity, name), dict):
            yield from _pod_affinity(pods, f"{path}.{name}")


def _node_affinity(affinity: Object, path: str) -> Errors:
    if affinity.get(_REQUIRED) is not None:
        selector = convert(NodeSelector, affinity[_REQUIRED])
        yield from check_node_selector(selector, f"{path}.{_REQUIRED}")
    for where, preferred in each_at(affinity, path, _PREFERRED):
        yield from _weight(preferred, where)
        selector = convert(NodeSelector, {"nodeSelectorTerms": [preferred.get("preference") or {}]})
        for error in check_node_selector(selector, where, check_values=False):
            place = error.path.replace(f"{where}{_ONE_TERM}", f"{where}.preference", 1)
            yield FieldError(error.kind, place, error.value, error.detail)


def _weight(preferred: Object, path: str) -> Errors:
    weight = preferred.get("weight") or 0
    if not 1 <= weight <= _HEAVIEST:
        yield invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _pod_affinity(affinity: Object, path: str) -> Errors:
    for where, term in each_at(affinity, path, _REQUIRED):
        yield from _pod_term(term, where)
    for where, preferred in each_at(affinity, path, _PREFERRED):
        yield from _weight(preferred, where)
        yield from _pod_term(preferred.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")


def _pod_term(term: Object, path: str) -> Errors:
    yield from label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    yield from label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for namespace in items_at(term, "namespaces"):
        yield from dns_label(namespace, f"{path}.namespace")
    yield from _label_keys(term, path)
    key = text_at(term, "topologyKey")
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from label_key(key, f"{path}.topologyKey")


def _label_keys(term: Object, path: str) -> Errors:
    """Keys whose values are taken from the pod itself and added to its selector."""
    matching, differing = items_at(term, "matchLabelKeys"), items_at(term, "mismatchLabelKeys")
    if not (matching or differing):
        return
    selector = term.get("labelSelector")
    for name, keys in (("matchLabelKeys", matching), ("mismatchLabelKeys", differing)):
        if keys and selector is None:
            detail = "must not be specified when labelSelector is not set"
            yield forbidden(f"{path}.{name}", detail)
            continue
        for index, key in enumerate(keys):
            yield from label_key(key, f"{path}.{name}[{index}]")
    last = {key: index for index, key in enumerate(matching)}
    seen = set(map_at(selector, "matchLabels"))
    for expression in items_at(selector, "matchExpressions"):
        key = text_at(expression, "key")
        if key in last and key in seen:
            detail = "exists in both matchLabelKeys and labelSelector"
            yield invalid(f"{path}[{last[key]}]", key, detail)
        seen.add(key)
    others = set(differing)
    for index, key in enumerate(matching):
        if key in others:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid(f"{path}.matchLabelKeys[{index}]", key, detail)


def check_tolerations(spec: Object, path: str) -> Errors:
    for where, toleration in each_at(spec, path, "tolerations"):
        yield from _toleration(toleration, where)


def without_seconds(toleration: Object) -> frozenset[tuple[str, Json]]:
    """What a toleration tolerates, for however long."""
    return frozenset(item for item in toleration.items() if item[0] != "tolerationSeconds")


def _toleration(toleration: Object, path: str) -> Errors:
    key, operator = text_at(toleration, "key"), text_at(toleration, "operator")
    value, effect = text_at(toleration, "value"), text_at(toleration, "effect")
    if key:
        yield from label_key(key, f"{path}.key")
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, detail)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{path}.effect", effect, detail)
    match operator:
        case "" | "Equal":
            if problems := formats.label_value_problems(value):
                yield invalid(f"{path}.operator", value, ";".join(problems))
        case "Exists":
            if value:
                detail = "value must be empty when `operator` is 'Exists'"
                yield invalid(f"{path}.operator", value, detail)
        case "Lt" | "Gt":
            yield not_supported(f"{path}.operator", operator, _ALL_OPERATORS)
        case _:
            yield not_supported(f"{path}.operator", operator, _TOLERATION_OPERATORS)
    yield from one_of(effect, f"{path}.effect", TAINT_EFFECTS, needed=False)


def check_spreading(spec: Object, path: str) -> Errors:
    left = Counter(_spreads_by(item) for item in items_at(spec, "topologySpreadConstraints"))
    for where, item in each_at(spec, path, "topologySpreadConstraints"):
        yield from positive(item.get("maxSkew"), f"{where}.maxSkew")
        if not text_at(item, "topologyKey"):
            yield required(f"{where}.topologyKey", "can not be empty")
        action = text_at(item, "whenUnsatisfiable")
        yield from supported(action, f"{where}.whenUnsatisfiable", _UNSATISFIABLE)
        key, then = _spreads_by(item)
        left[key, then] -= 1
        if left[key, then]:
            # All but the last of those that agree are reported.
            yield duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {then}}}")
        yield from _minimum_domains(item, action, where)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            yield from supported(item.get(name), f"{where}.{name}", _INCLUSION)
        yield from _label_keys(item, where)
        yield from label_selector(item.get("labelSelector"), f"{where}.labelSelector")


def _spreads_by(constraint: Object) -> tuple[str, str]:
    return text_at(constraint, "topologyKey"), text_at(constraint, "whenUnsatisfiable")


def _minimum_domains(item: Object, action: str, path: str) -> Errors:
    if (least := item.get("minDomains")) is None:
        return
    yield from positive(least, f"{path}.minDomains")
    if action != DO_NOT_SCHEDULE:
        detail = f"can only use minDomains if whenUnsatisfiable={DO_NOT_SCHEDULE}, not {action}"
        yield invalid(f"{path}.minDomains", least, detail)


def check_gates(spec: Object, path: str) -> Errors:
    seen: set[str] = set()
    for where, gate in each_at(spec, path, "schedulingGates"):
        name = text_at(gate, "name")
        yield from label_key(name, where)
        if name in seen:
            yield duplicate(where, name)
        seen.add(name)


def check_taints(taints: Json, path: str) -> Errors:
    """Taints of a node, unique by key and effect."""
    seen: set[tuple[str, str]] = set()
    for where, taint in each_at({"taints": taints}, "", "taints"):
        place = f"{path}{where.removeprefix('taints')}"
        key, effect = text_at(taint, "key"), text_at(taint, "effect")
        yield from label_key(key, f"{place}.key")
        value = text_at(taint, "value")
        if problems := formats.label_value_problems(value):
            yield invalid(f"{place}.value", value, ";".join(problems))
        yield from one_of(effect, f"{place}.effect", TAINT_EFFECTS)
        if (key, effect) in seen:
            error = duplicate(place, taint)
            detail = "taints must be unique by key and effect pair"
            yield FieldError(error.kind, error.path, error.value, detail)
        seen.add((key, effect))
