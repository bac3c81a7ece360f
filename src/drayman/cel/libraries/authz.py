"""The authorizer's functions.

Selectors have no authorizer, so none of these can ever be called with a value of its types. But they are declared, which is visible: on an
attribute, whose type is unknown before run time, `x.allowed()` compiles, and fails where upstream's does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NoReturn

from drayman.cel.costs import (
    LIST_CREATE,
    STRING_TRAVERSAL,
    STRUCT_CREATE,
    CallEstimate,
    CostNode,
    actual_size,
    fixed_cost,
)
from drayman.cel.functions import Function, Library, Rule, member, priced
from drayman.cel.libraries.rules import NOMINAL, nominal_estimate
from drayman.cel.types import BOOL, STRING, Type, object_type
from drayman.cel.values import no_such_overload

_PREFIX = "kubernetes.authorization"
AUTHORIZER = object_type(f"{_PREFIX}.Authorizer")
PATH_CHECK = object_type(f"{_PREFIX}.PathCheck")
GROUP_CHECK = object_type(f"{_PREFIX}.GroupCheck")
RESOURCE_CHECK = object_type(f"{_PREFIX}.ResourceCheck")
DECISION = object_type(f"{_PREFIX}.Decision")

_CHECK_COST = 350_000
_REQUIREMENTS_PER_CHARACTER = 0.5
_REQUIREMENT = float(LIST_CREATE + STRUCT_CREATE)


def _unreachable(*args: object) -> NoReturn:
    raise no_such_overload()


def _selector_estimate(args: Sequence[CostNode]) -> CallEstimate:
    text = args[1].size
    requirements = text.cost(_REQUIREMENTS_PER_CHARACTER).scaled(_REQUIREMENT)
    return CallEstimate(fixed_cost(LIST_CREATE) + text.cost(STRING_TRAVERSAL) + requirements)


def _selector_cost(args: Sequence[object], result: object) -> int:
    text = actual_size(args[1])
    requirements = math.ceil(math.ceil(text * _REQUIREMENTS_PER_CHARACTER) * _REQUIREMENT)
    return LIST_CREATE + math.ceil(text * STRING_TRAVERSAL) + requirements


def _call(name: str, id: str, result: Type, *params: Type) -> Function:
    return member(name, id, params, result, _unreachable)


_CHECK = Rule(lambda args: CallEstimate(fixed_cost(_CHECK_COST)), lambda args, result: _CHECK_COST)
_EQUALITY = {
    type.name: nominal_estimate
    for type in (AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION)
}

AUTHZ = Library(
    "kubernetes.authz",
    functions=(
        *priced(
            NOMINAL,
            _call("path", "authorizer_path", PATH_CHECK, AUTHORIZER, STRING),
            _call("group", "authorizer_group", GROUP_CHECK, AUTHORIZER, STRING),
            _call(
                "serviceAccount",
                "authorizer_serviceaccount",
                AUTHORIZER,
                AUTHORIZER,
                STRING,
                STRING,
            ),
            _call("resource", "groupcheck_resource", RESOURCE_CHECK, GROUP_CHECK, STRING),
            _call(
                "subresource", "resourcecheck_subresource", RESOURCE_CHECK, RESOURCE_CHECK, STRING
            ),
            _call("namespace", "resourcecheck_namespace", RESOURCE_CHECK, RESOURCE_CHECK, STRING),
            _call("name", "resourcecheck_name", RESOURCE_CHECK, RESOURCE_CHECK, STRING),
            _call("errored", "decision_errored", BOOL, DECISION),
            _call("error", "decision_error", STRING, DECISION),
            _call("allowed", "decision_allowed", BOOL, DECISION),
            _call("reason", "decision_reason", STRING, DECISION),
        ),
        *priced(
            _CHECK,
            _call("check", "pathcheck_check", DECISION, PATH_CHECK, STRING),
            _call("check", "resourcecheck_check", DECISION, RESOURCE_CHECK, STRING),
        ),
    ),
    equality=_EQUALITY,
)

AUTHZ_SELECTORS = Library(
    "kubernetes.authzSelectors",
    priced(
        Rule(_selector_estimate, _selector_cost),
        _call("fieldSelector", "authorizer_fieldselector", RESOURCE_CHECK, RESOURCE_CHECK, STRING),
        _call("labelSelector", "authorizer_labelselector", RESOURCE_CHECK, RESOURCE_CHECK, STRING),
    ),
)
