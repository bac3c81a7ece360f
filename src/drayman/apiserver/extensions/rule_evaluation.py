"""Evaluating the rules of a schema on an object, and on what it was before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from drayman.api.struct import Json
from drayman.api.validation.field_errors import FieldError, duplicate, forbidden, invalid, required
from drayman.apiserver.extensions.correlation import Correlation, OldItems, key_of, position_of
from drayman.apiserver.extensions.findings import child, entry, invalid_unshown, shown
from drayman.apiserver.extensions.rule_types import rule_value
from drayman.apiserver.extensions.rules import OLD_SELF, Compiled, RuleNode
from drayman.apiserver.served.quick_rules import Quickly, TooLongError, allowance
from drayman.cel.environment import Evaluation, Program
from drayman.cel.errors import CostLimitError
from drayman.cel.values import NONE, OptionalValue

COST_PER_CALL: Final = 1_000_000
COST_BUDGET: Final = 10_000_000
"""The budget of all rules on one object."""
LONGEST_MESSAGE: Final = 5 * 1024
OUT_OF_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


@dataclass(frozen=True, slots=True)
class Old:
    """The old value: the value itself for `oldSelf`, and what shows whether it is unchanged."""

    value: Json = None
    correlation: Correlation | None = None
    parent: Correlation | None = None

    @property
    def is_unchanged(self) -> bool:
        nearest = self.correlation or self.parent
        return nearest is not None and nearest.unchanged

    def key(self, name: str) -> Old:
        value = self.value.get(name) if isinstance(self.value, dict) else None
        if self.correlation is None:
            return Old(value, None, self.parent)
        if self.parent is None and name in ("apiVersion", "kind"):
            return Old(value)
        return Old(value, key_of(self.correlation, name), self.correlation)

    def item(self, item: Json, position: int, before: OldItems) -> Old:
        """The old value of an item. `before` are all items of the old list."""
        value = before.like(item)
        if self.correlation is None:
            return Old(value, None, self.parent)
        return Old(value, position_of(self.correlation, position), self.correlation)


class _Stopped(Exception):
    """The budget is used up."""


@dataclass(slots=True)
class RuleFindings:
    """The results of the rules: errors, and warnings about what was already wrong and did not change."""

    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    budget: int = COST_BUDGET
    _quickly: Quickly | None = field(default_factory=allowance)

    def evaluate(self, node: RuleNode, value: Json, old: Old, path: str = "") -> None:
        """Evaluate the rules at a place and below it, until the budget is used up."""
        try:
            self._visit(node, value, old, path)
        except _Stopped:
            return

    def _visit(self, node: RuleNode, value: Json, old: Old, path: str) -> None:
        if value is None:
            return
        if self._quickly is not None and not node.is_compiled:
            raise TooLongError
        if node.rules:
            self._evaluate_here(node, value, old, path)
        if isinstance(value, list) and node.items is not None:
            before = OldItems(old.value, node.schema)
            for position, item in enumerate(value):
                inner = old.item(item, position, before)
                self._visit(node.items, item, inner, entry(path, position))
        elif isinstance(value, dict):
            self._visit_members(node, value, old, path)

    def _visit_members(
        self, node: RuleNode, value: Mapping[str, Json], old: Old, path: str
    ) -> None:
        for name, inner in value.items():
            if node.additional is not None:
                self._visit(node.additional, inner, old.key(name), entry(path, name))
            if name in node.fields:
                self._visit(node.fields[name], inner, old.key(name), child(path, name))

    def _evaluate_here(self, node: RuleNode, value: Json, old: Old, path: str) -> None:
        is_resource = node.is_resource
        variables = {"self": rule_value(value, node.schema, is_resource=is_resource)}
        optional = {**variables, OLD_SELF: NONE}
        if old.value is not None:
            before = rule_value(old.value, node.schema, is_resource=is_resource)
            variables[OLD_SELF], optional[OLD_SELF] = before, OptionalValue(before)
        for rule in node.rules:
            if rule.problem:
                self._refuse(node, path, f"rule compile error: {rule.problem}")
            elif rule.program is not None and not self._is_skipped(rule, old):
                chosen = optional if rule.is_optional_old else variables
                self._evaluate_rule(node, rule, chosen, value, old, path)

    @staticmethod
    def _is_skipped(rule: Compiled, old: Old) -> bool:
        """A rule that uses `oldSelf` is skipped if there is no old value, unless it declares that optional."""
        return rule.uses_old_self and old.value is None and not rule.is_optional_old

    def _refuse(self, node: RuleNode, path: str, detail: str) -> None:
        self.errors.append(invalid(shown(path), node.schema.get("type", ""), detail))

    def _spend(self, node: RuleNode, path: str, evaluation: Evaluation) -> None:
        if evaluation.cost > self.budget:
            self._refuse(node, path, OUT_OF_BUDGET)
            raise _Stopped
        self.budget -= evaluation.cost

    def _evaluate_rule(
        self,
        node: RuleNode,
        rule: Compiled,
        variables: Mapping[str, object],
        value: Json,
        old: Old,
        path: str,
    ) -> None:
        assert rule.program is not None
        evaluation = self._run(rule.program, variables)
        self._spend(node, path, evaluation)
        if evaluation.error is not None:
            self._refuse_failed(node, rule, evaluation, path)
        elif evaluation.value is not True:
            detail = self._message(node, rule, variables, path) or rule.default_message
            field_path = child(path, rule.field_path) if rule.field_path else path
            error = _error(rule, node, field_path, value, detail)
            if not rule.uses_old_self and old.is_unchanged:
                self.warnings.append(str(error))
            else:
                self.errors.append(error)

    def _run(self, program: Program, variables: Mapping[str, object]) -> Evaluation:
        """Evaluate a program within its limit. Raises TooLongError where it has to be quick and is not."""
        if self._quickly is None:
            return program.evaluate(variables, COST_PER_CALL)
        evaluation = program.evaluate(variables, min(COST_PER_CALL, self._quickly.left))
        if isinstance(evaluation.error, CostLimitError):
            raise TooLongError
        self._quickly.spend(evaluation.cost)
        return evaluation

    def _refuse_failed(
        self, node: RuleNode, rule: Compiled, evaluation: Evaluation, path: str
    ) -> None:
        error = evaluation.error
        if isinstance(error, CostLimitError):
            text = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {rule.text}"
            self._refuse(node, path, text)
            raise _Stopped
        if str(error).startswith("no such overload"):
            text = f"'{error}': call arguments did not match a supported operator, function or macro signature for rule: {rule.text}"
        else:
            text = f"{error} evaluating rule: {rule.text}"
        self._refuse(node, path, text)

    def _message(
        self, node: RuleNode, rule: Compiled, variables: Mapping[str, object], path: str
    ) -> str:
        """The message that an expression gives; empty where it gives none that can be used."""
        if rule.message is None:
            return ""
        evaluation = self._run(rule.message, variables)
        if isinstance(evaluation.error, CostLimitError):
            source = rule.rule.get("messageExpression")
            text = f'no further validation rules will be run due to call cost exceeds limit for messageExpression: "{source}"'
            self._refuse(node, path, text)
            raise _Stopped
        self._spend(node, path, evaluation)
        text = evaluation.value.strip() if isinstance(evaluation.value, str) else ""
        is_usable = len(text.encode()) <= LONGEST_MESSAGE and "\n" not in text
        return text if is_usable else ""


def _error(rule: Compiled, node: RuleNode, path: str, value: Json, detail: str) -> FieldError:
    hidden = node.schema.get("type") in ("object", "array")
    match rule.rule.get("reason"):
        case "FieldValueForbidden":
            return forbidden(shown(path), detail)
        case "FieldValueRequired":
            return required(shown(path), detail)
        case "FieldValueDuplicate":
            return duplicate(shown(path), value)
    if hidden:
        return invalid_unshown(shown(path), detail)
    return invalid(shown(path), value, detail)
