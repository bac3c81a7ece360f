"""What names mean in an environment: variables, types with fields, constants and functions, merged from libraries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from drayman.cel import types
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Fields, Function, Library, Message, Overload, Rule
from drayman.cel.types import Type
from drayman.cel.values import TypeValue


class Name(Struct, frozen=True):
    """What an identifier refers to. `value` is set for constants and types, which need no variable at run time."""

    name: str
    type: Type
    value: object = None


class Declarations(Struct, frozen=True):
    names: Mapping[str, Name] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    fields: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)  # of object types
    overloads: Mapping[str, Overload] = field(default_factory=dict)
    messages: Mapping[str, Message] = field(default_factory=dict)

    def name(self, identifier: str) -> Name | None:
        return self.names.get(identifier.removeprefix("."))

    def function(self, identifier: str) -> Function | None:
        return self.functions.get(identifier.removeprefix("."))


def declare(
    libraries: Iterable[Library],
    variables: Mapping[str, Type],
    fields: Mapping[str, Mapping[str, Type]],
) -> Declarations:
    """One set of declarations from libraries and an environment's own variables and object types."""
    names: dict[str, Name] = {}
    functions: dict[str, Function] = {}
    messages: dict[str, Message] = {}
    for library in libraries:
        for type_ in library.types:
            names[type_.name] = type_name(type_)
        for message in library.messages:
            messages[message.name] = message
            names.setdefault(message.name, Name(message.name, types.type_of(message.type)))
        for identifier, (type_, value) in library.constants.items():
            names[identifier] = Name(identifier, type_, value)
        for function in library.functions:
            known = functions.get(function.name)
            functions[function.name] = function if known is None else _merge(known, function)
    for object_name, declared in fields.items():
        object_type = types.object_type(object_name)
        names[object_name] = Name(object_name, types.type_of(object_type))
        messages[object_name] = Message(object_name, object_type, declared, _unknown_type)
    names.update({identifier: Name(identifier, type_) for identifier, type_ in variables.items()})
    overloads = {o.id: o for function in functions.values() for o in function.overloads}
    return Declarations(names, functions, dict(fields), overloads, messages)


def _unknown_type(fields: Fields) -> object:
    """Objects come from outside: a literal of one type-checks, but nothing can build it."""
    raise EvaluationError("unknown type")


def type_name(type_: Type) -> Name:
    return Name(type_.name, types.type_of(type_), TypeValue(type_.name))


def _merge(known: Function, other: Function) -> Function:
    ids = {overload.id for overload in known.overloads}
    added = tuple(overload for overload in other.overloads if overload.id not in ids)
    rule = Rule(known.rule.estimate or other.rule.estimate, known.rule.cost or other.rule.cost)
    dynamic = known.dynamic + other.dynamic
    return replace(known, overloads=known.overloads + added, rule=rule, dynamic=dynamic)
