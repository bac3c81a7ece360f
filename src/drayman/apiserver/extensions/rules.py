"""`x-kubernetes-validations`: rules in CEL at any place of a schema.

Programs are compiled when they are first needed, since many definitions are installed and few of them used. An evaluation has a
budget for the whole object and a limit for each rule, so that no object can block the server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.extensions.identifiers import identifier
from drayman.apiserver.extensions.paths import FieldPathError, valid_field_path
from drayman.apiserver.extensions.rule_types import MAX_REQUEST, RuleType, rule_type
from drayman.apiserver.extensions.schemas import EMBEDDED, RULES, Schema
from drayman.cel.environment import Environment, Program
from drayman.cel.errors import CompileError
from drayman.cel.functions import Library
from drayman.cel.libraries import kubernetes_libraries
from drayman.cel.standard import OPTIONALS, STANDARD_LIBRARY
from drayman.cel.standard_macros import BINDINGS, STANDARD, TWO_VARIABLES
from drayman.cel.types import BOOL, STRING, optional_of

OLD_SELF: Final = "oldSelf"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A rule: its programs, or what is wrong with them."""

    rule: Mapping[str, Json]
    program: Program | None = None
    message: Program | None = None
    uses_old_self: bool = False
    problem: str = ""
    message_problem: str = ""
    field_path: str = ""

    @property
    def is_optional_old(self) -> bool:
        return bool(self.rule.get("optionalOldSelf"))

    @property
    def text(self) -> str:
        """What names the rule in an error."""
        return str(self.rule.get("message") or self.rule.get("rule") or "").strip()

    @property
    def default_message(self) -> str:
        if self.rule.get("message"):
            return self.text
        return f"failed rule: {self.text}"


class RuleNode:
    """A place in a schema: the rules there and the places below it."""

    def __init__(
        self, schema: Schema, declared: RuleType | None, *, is_resource: bool = False
    ) -> None:
        self.schema = schema
        self.declared = declared
        self.is_resource = is_resource

    @property
    def is_compiled(self) -> bool:
        """Whether the rules here are ready to be evaluated, which takes a while the first time."""
        return "rules" in self.__dict__ or not self.schema.get(RULES)

    @cached_property
    def rules(self) -> tuple[Compiled, ...]:
        found = self.schema.get(RULES) or ()
        if not found or self.declared is None:
            return ()
        environment = cache(partial(_environment, self.declared))
        return tuple(_compile(rule, self.schema, environment) for rule in found)

    @cached_property
    def items(self) -> RuleNode | None:
        inner = self.schema.get("items")
        return self._child(inner, self.declared.element if self.declared else None)

    @cached_property
    def additional(self) -> RuleNode | None:
        inner = self.schema.get("additionalProperties")
        return self._child(inner, self.declared.element if self.declared else None)

    @cached_property
    def fields(self) -> Mapping[str, RuleNode]:
        found: dict[str, RuleNode] = {}
        if self.declared is None:
            return found
        for name, inner in (self.schema.get("properties") or {}).items():
            written = identifier(name)
            if written is None:
                declared = rule_type(inner, is_resource=bool(inner.get(EMBEDDED)))
            else:
                declared = self.declared.fields.get(written)
            node = self._child(inner, declared)
            if node is not None:
                found[name] = node
        return found

    @staticmethod
    def _child(schema: Json, declared: RuleType | None) -> RuleNode | None:
        if not isinstance(schema, dict) or declared is None or not has_rules(schema):
            return None
        return RuleNode(schema, declared, is_resource=bool(schema.get(EMBEDDED)))

    @property
    def max_cardinality(self) -> int:
        """How many such values a request has room for."""
        size = self.declared.min_size if self.declared is not None else 1
        return MAX_REQUEST // (size + 1)


def has_rules(schema: Schema) -> bool:
    """Whether there are rules in a schema, not counting those inside alternatives."""
    if schema.get(RULES):
        return True
    inner = [schema.get("items"), schema.get("additionalProperties")]
    inner += (schema.get("properties") or {}).values()
    return any(isinstance(one, dict) and has_rules(one) for one in inner)


def rule_tree(schema: Schema) -> RuleNode | None:
    """The rules of the schema of a resource; None where it has none."""
    if not has_rules(schema):
        return None
    return RuleNode(schema, rule_type(schema, is_resource=True), is_resource=True)


def _environment(declared: RuleType, optional_old: bool) -> Environment:
    """The environment of rules about a type. `oldSelf` is a value in it, or optional."""
    type_ = declared.type
    return Environment(
        _libraries(),
        variables={"self": type_, OLD_SELF: optional_of(type_) if optional_old else type_},
        fields=declared.declared_fields(),
        input_sizes=declared.size,
    )


@cache
def _libraries() -> tuple[Library, ...]:
    macros = Library("macros", macros=STANDARD + TWO_VARIABLES + BINDINGS)
    return (*STANDARD_LIBRARY, macros, OPTIONALS, *kubernetes_libraries())


def _compile(
    rule: Mapping[str, Json], schema: Schema, environment_for: Callable[[bool], Environment]
) -> Compiled:
    source = rule.get("rule") or ""
    if not source.strip():
        return Compiled(rule)
    environment = environment_for(bool(rule.get("optionalOldSelf")))
    try:
        program = environment.compile(source)
    except CompileError as error:
        kind = "program instantiation failed" if error.is_internal else "compilation failed"
        return Compiled(rule, problem=f"{kind}: {error}")
    if program.output_type != BOOL:
        return Compiled(rule, problem="cel expression must evaluate to a bool")
    references = program.checked.references.values()
    uses_old = any(reference.name == OLD_SELF for reference in references)
    message, problem = _compile_message(rule, environment)
    return Compiled(
        rule, program, message, uses_old, "", problem, _field_path(rule.get("fieldPath"), schema)
    )


def _compile_message(
    rule: Mapping[str, Json], environment: Environment
) -> tuple[Program | None, str]:
    source = rule.get("messageExpression")
    if not source:
        return None, ""
    try:
        message = environment.compile(source)
    except CompileError as error:
        return None, f"messageExpression compilation failed: {error}"
    if message.output_type != STRING:
        return None, "messageExpression must evaluate to a string"
    return message, ""


def _field_path(path: str | None, schema: Schema) -> str:
    if not path:
        return ""
    try:
        return valid_field_path(path, schema)[0]
    except FieldPathError:
        return (
            ""  # Such a definition is refused; one that is stored already means the object itself.
        )
