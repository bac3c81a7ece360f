"""When a job is finished, and how it reacts to failure and success of its pods."""

from __future__ import annotations

from typing import Final

from drayman.api import formats
from drayman.api.integers import parse_integer
from drayman.api.struct import Json
from drayman.api.validation.field_errors import duplicate, invalid, required, too_long, too_many
from drayman.api.validation.names import domain_prefixed_path, label_key
from drayman.apiserver.kinds.checks import not_negative, one_of, supported
from drayman.apiserver.kinds.reading import each_at, items_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Object

_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS: Final = ("In", "NotIn")
_STATUSES: Final = ("False", "True", "Unknown")
_REPLACEMENTS: Final = ("Failed", "TerminatingOrFailed")
_MOST_RULES: Final = 20
_MOST_CONDITIONS: Final = 20
_MOST_EXIT_CODES: Final = 255
_LONGEST_INDEXES: Final = 64 * 1024
_COMPLETION_MODES: Final = ("NonIndexed", "Indexed")
_MOST_PARALLEL: Final = 100_000
_MOST_IN_LARGE: Final = 10_000
_MANAGER_LENGTH: Final = 63


def check_policies(spec: Object, path: str) -> Errors:
    """The policies of a job for failed pods, for success and for the replacement of pods."""
    failure, success = spec.get("podFailurePolicy"), spec.get("successPolicy")
    if failure is not None:
        yield from _failure(spec, f"{path}.podFailurePolicy")
    if success is not None:
        if spec.get("completionMode") != "Indexed":
            detail = "requires indexed completion mode"
            yield invalid(f"{path}.successPolicy", success, detail)
        else:
            yield from _success(success, spec.get("completions"), f"{path}.successPolicy")
    choices = _REPLACEMENTS if failure is None else _REPLACEMENTS[:1]
    replacement = spec.get("podReplacementPolicy")
    yield from supported(replacement, f"{path}.podReplacementPolicy", choices)


def _manager(name: str, path: str) -> Errors:
    """The external manager of a job: a domain, and a path below it."""
    yield from domain_prefixed_path(name, path)
    if formats.byte_length(name) > _MANAGER_LENGTH:
        yield too_long(path, _MANAGER_LENGTH)


def _failed_indexes(spec: Object, path: str) -> Errors:
    """How many indexes may fail before the job does. Very large jobs must set a limit, and not too high a one."""
    most, completions = spec.get("maxFailedIndexes"), spec.get("completions")
    field = f"{path}.maxFailedIndexes"
    if most is not None and completions is not None and most > completions:
        yield invalid(field, most, "must be less than or equal to completions")
    if most is not None and most > _MOST_PARALLEL:
        yield invalid(field, most, f"must be less than or equal to {_MOST_PARALLEL}")
    if (completions or 0) <= _MOST_PARALLEL or spec.get("backoffLimitPerIndex") is None:
        return
    if most is None:
        detail = f"must be specified when completions is above {_MOST_PARALLEL}"
        yield required(field, detail)
    for name in ("parallelism", "maxFailedIndexes"):
        if (spec.get(name) or 0) > _MOST_IN_LARGE:
            detail = (
                f"must be less than or equal to {_MOST_IN_LARGE} when completions are above {_MOST_PARALLEL}"
                " and used with backoff limit per index"
            )
            yield invalid(f"{path}.{name}", spec[name], detail)


def check_completion(spec: Object, path: str) -> Errors:
    """How a job completes: its mode, its indexes, and its external manager."""
    if spec.get("managedBy") is not None:
        yield from _manager(spec["managedBy"], f"{path}.managedBy")
    mode = spec.get("completionMode")
    yield from supported(mode, f"{path}.completionMode", _COMPLETION_MODES)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if mode == "Indexed":
        yield from _failed_indexes(spec, path)
        if spec.get("completions") is None:
            yield required(f"{path}.completions", "when completion mode is Indexed")
        if (spec.get("parallelism") or 0) > _MOST_PARALLEL:
            detail = (
                f"must be less than or equal to {_MOST_PARALLEL} when completion mode is Indexed"
            )
            yield invalid(f"{path}.parallelism", spec["parallelism"], detail)
        return
    for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.get(name) is not None:
            yield invalid(f"{path}.{name}", spec[name], "requires indexed completion mode")


def _failure(spec: Object, path: str) -> Errors:
    policy: Json = spec["podFailurePolicy"]
    rules = items_at(policy, "rules")
    if len(rules) > _MOST_RULES:
        yield too_many(f"{path}.rules", len(rules), _MOST_RULES)
    names = {
        text_at(container, "name")
        for kind in ("containers", "initContainers")
        for container in items_at(spec, "template", "spec", kind)
    }
    for where, rule in each_at(policy, path, "rules"):
        yield from _failure_rule(spec, rule, names, where)


def _failure_rule(spec: Object, rule: Object, names: set[str], path: str) -> Errors:
    action = text_at(rule, "action")
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        detail = "requires the backoffLimitPerIndex to be set"
        yield invalid(f"{path}.action", action, detail)
    else:
        yield from one_of(action, f"{path}.action", _ACTIONS)
    codes, conditions = rule.get("onExitCodes"), items_at(rule, "onPodConditions")
    if codes is not None:
        yield from _exit_codes(codes, names, f"{path}.onExitCodes")
    if len(conditions) > _MOST_CONDITIONS:
        yield too_many(f"{path}.onPodConditions", len(conditions), _MOST_CONDITIONS)
    for where, pattern in each_at(rule, path, "onPodConditions"):
        kind = text_at(pattern, "type")
        yield from label_key(kind, f"{where}.type")
        yield from one_of(pattern.get("status"), f"{where}.status", _STATUSES)
    if (codes is not None) is bool(conditions):
        both = "specifying both OnExitCodes and OnPodConditions is not supported"
        one = "specifying one of OnExitCodes and OnPodConditions is required"
        yield invalid(path, None, both if conditions else one)


def _exit_codes(codes: Json, names: set[str], path: str) -> Errors:
    operator, values = text_at(codes, "operator"), items_at(codes, "values")
    yield from one_of(operator, f"{path}.operator", _OPERATORS)
    name = codes.get("containerName")
    if name is not None and name not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{path}.containerName", name, detail)
    if not values:
        yield invalid(f"{path}.values", values, "at least one value is required")
    elif len(values) > _MOST_EXIT_CODES:
        yield too_many(f"{path}.values", len(values), _MOST_EXIT_CODES)
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator")
        if value in seen:
            yield duplicate(f"{path}.values[{index}]", value)
        seen.add(value)
    if values != sorted(values):
        yield invalid(f"{path}.values", values, "must be ordered")


def _success(policy: Json, completions: int | None, path: str) -> Errors:
    rules = items_at(policy, "rules")
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        yield required(f"{path}.rules", detail)
    if len(rules) > _MOST_RULES:
        yield too_many(f"{path}.rules", len(rules), _MOST_RULES)
    for where, rule in each_at(policy, path, "rules"):
        yield from _success_rule(rule, completions or 0, where)


def _success_rule(rule: Object, completions: int, path: str) -> Errors:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        yield required(path, detail)
    named = 0
    if indexes is not None:
        if formats.byte_length(indexes) > _LONGEST_INDEXES:
            yield too_long(f"{path}.succeededIndexes", _LONGEST_INDEXES)
        try:
            named = _count_indexes(indexes, completions)
        except ValueError as error:
            detail = f"error parsing succeededIndexes: {error}"
            yield invalid(f"{path}.succeededIndexes", indexes, detail)
    if count is None:
        return
    yield from not_negative(count, f"{path}.succeededCount")
    if count > completions:
        detail = (
            f"must be less than or equal to {completions} (the number of specified completions)"
        )
        yield invalid(f"{path}.succeededCount", count, detail)
    if indexes is not None and count > named:
        detail = f"must be less than or equal to {named} (the number of indexes in the specified succeededIndexes field)"
        yield invalid(f"{path}.succeededCount", count, detail)


def _count_indexes(text: str, completions: int) -> int:
    """How many indexes a list such as `0,3-5` names. They ascend. Raises ValueError."""
    if not text:
        return 0
    total, last = 0, -1
    for part in text.split(","):
        first, dash, end = part.partition("-")
        last_text = end if dash else first
        low, high = parse_integer(first), parse_integer(last_text)
        if low is None or high is None or not (first.isdigit() and last_text.isdigit()):
            raise ValueError(f'cannot convert string to integer for index: "{part}"')
        if high >= completions:
            raise ValueError(f'too large index: "{high}"')
        if low <= last or (dash and high <= low):
            raise ValueError(f"non-increasing order, previous: {last}, current: {low}")
        total, last = total + high - low + 1, high
    return total
