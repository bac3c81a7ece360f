"""The parts of a pod that say where it may run: affinity, tolerations, spreading and gates."""

from __future__ import annotations

from typing import Final

from drayman.api import formats
from drayman.api.codec import convert
from drayman.api.core import NodeSelector
from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    FieldError,
    duplicate,
    invalid,
    invalid_each,
    not_supported,
    required,
)
from drayman.api.validation.node_selectors import check_node_selector
from drayman.apiserver.kinds.checks import label_selector, one_of, positive
from drayman.apiserver.kinds.reading import at, each_at, items_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.strategy import Object

TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS: Final = ("Equal", "Exists")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION: Final = ("Honor", "Ignore")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_HEAVIEST: Final = 100
_ONE_TERM: Final = ".nodeSelectorTerms[0]"


def check_affinity(affinity: Json, path: str) -> Errors:
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
        for error in check_node_selector(selector, where):
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
        problems = formats.dns_label_problems(namespace)
        yield from invalid_each(f"{path}.namespace", namespace, problems)
    yield from _topology_key(term, path)


def _topology_key(value: Object, path: str) -> Errors:
    key = text_at(value, "topologyKey")
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from invalid_each(f"{path}.topologyKey", key, formats.label_key_problems(key))


def check_tolerations(spec: Object, path: str) -> Errors:
    for where, toleration in each_at(spec, path, "tolerations"):
        yield from _toleration(toleration, where)


def _toleration(toleration: Object, path: str) -> Errors:
    key, operator = text_at(toleration, "key"), text_at(toleration, "operator")
    value, effect = text_at(toleration, "value"), text_at(toleration, "effect")
    if key:
        yield from invalid_each(f"{path}.key", key, formats.label_key_problems(key))
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
        case _:
            yield not_supported(f"{path}.operator", operator, _TOLERATION_OPERATORS)
    yield from one_of(effect, f"{path}.effect", TAINT_EFFECTS, needed=False)


def check_spreading(spec: Object, path: str) -> Errors:
    seen: list[tuple[str, str]] = [
        (text_at(item, "topologyKey"), text_at(item, "whenUnsatisfiable"))
        for item in items_at(spec, "topologySpreadConstraints")
    ]
    for index, (where, item) in enumerate(each_at(spec, path, "topologySpreadConstraints")):
        yield from positive(item.get("maxSkew"), f"{where}.maxSkew")
        if text_at(item, "topologyKey"):
            yield from _topology_key(item, where)
        else:
            yield required(f"{where}.topologyKey", "can not be empty")
        action = text_at(item, "whenUnsatisfiable")
        if action not in _UNSATISFIABLE:
            yield not_supported(f"{where}.whenUnsatisfiable", action, _UNSATISFIABLE)
        if seen[index] in seen[index + 1 :]:
            key, then = seen[index]
            yield duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {then}}}")
        yield from _minimum_domains(item, action, where)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            yield from one_of(item.get(name), f"{where}.{name}", _INCLUSION, needed=False)
        yield from label_selector(item.get("labelSelector"), f"{where}.labelSelector")


def _minimum_domains(item: Object, action: str, path: str) -> Errors:
    if (least := item.get("minDomains")) is None:
        return
    yield from positive(least, f"{path}.minDomains")
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield invalid(f"{path}.minDomains", least, detail)


def check_gates(spec: Object, path: str) -> Errors:
    seen: set[str] = set()
    for where, gate in each_at(spec, path, "schedulingGates"):
        name = text_at(gate, "name")
        yield from invalid_each(where, name, formats.label_key_problems(name))
        if name in seen:
            yield duplicate(where, name)
        seen.add(name)


def check_taints(taints: Json, path: str) -> Errors:
    """Taints of a node, unique by key and effect."""
    seen: set[tuple[str, str]] = set()
    for where, taint in each_at({"taints": taints}, "", "taints"):
        place = f"{path}{where.removeprefix('taints')}"
        key, effect = text_at(taint, "key"), text_at(taint, "effect")
        yield from invalid_each(f"{place}.key", key, formats.label_key_problems(key))
        value = text_at(taint, "value")
        if problems := formats.label_value_problems(value):
            yield invalid(f"{place}.value", value, ";".join(problems))
        yield from one_of(effect, f"{place}.effect", TAINT_EFFECTS)
        if (key, effect) in seen:
            error = duplicate(place, taint)
            detail = "taints must be unique by key and effect pair"
            yield FieldError(error.kind, error.path, error.value, detail)
        seen.add((key, effect))
