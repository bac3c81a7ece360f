"""Lists, maps and messages that an expression builds from computed parts."""

from __future__ import annotations

from drayman.cel.costs import LIST_CREATE, MAP_CREATE, STRUCT_CREATE
from drayman.cel.errors import AbortError, EvaluationError
from drayman.cel.functions import Message
from drayman.cel.runtime import State, Step
from drayman.cel.values import NONE, MapValue, OptionalValue, slot, type_name


def list_step(elements: list[Step], optional: frozenset[int]) -> Step:
    def step(state: State) -> object:
        values: list[object] = []
        for index, element in enumerate(elements):
            value = element(state)
            if isinstance(value, EvaluationError):
                state.charge(LIST_CREATE)
                return value
            if index in optional:
                if not isinstance(value, OptionalValue):
                    state.charge(LIST_CREATE)
                    return _not_optional("list element", value)
                if value is NONE:
                    continue
                value = value.value
            values.append(value)
        state.charge(LIST_CREATE)
        return values

    return step


def _not_optional(what: str, value: object) -> EvaluationError:
    return EvaluationError(
        f"cannot initialize optional {what} from non-optional value of type {type_name(value)}"
    )


def map_step(entries: list[tuple[Step, Step, bool]]) -> Step:
    def step(state: State) -> object:
        built = _build_map(state, entries)
        state.charge(MAP_CREATE)
        return built

    return step


def _build_map(state: State, entries: list[tuple[Step, Step, bool]]) -> MapValue | EvaluationError:
    values = MapValue()
    for key_step, value_step, optional in entries:
        key = key_step(state)
        if isinstance(key, EvaluationError):
            return key
        value = value_step(state)
        if isinstance(value, EvaluationError):
            return value
        stored = slot(key)
        if optional:
            if not isinstance(value, OptionalValue):
                return _not_optional("entry", value)
            if value is NONE:
                values.pop(stored, None)
                continue
            value = value.value
        values[stored] = value
    return values


def message_step(message: Message, fields: list[tuple[str, Step, bool]]) -> Step:
    def step(state: State) -> object:
        built = _build_message(state, message, fields)
        state.charge(STRUCT_CREATE)
        return built

    return step


def _build_message(state: State, message: Message, fields: list[tuple[str, Step, bool]]) -> object:
    values: dict[str, object] = {}
    for name, value_step, optional in fields:
        value = value_step(state)
        if isinstance(value, EvaluationError):
            return value
        if optional:
            if not isinstance(value, OptionalValue):
                return _not_optional("field", value)
            if value is NONE:
                continue
            value = value.value
        values.pop(name, None)
        values[name] = value
    try:
        return message.build(values)
    except AbortError:
        raise
    except EvaluationError as error:
        return error
