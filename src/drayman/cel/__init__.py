"""The Common Expression Language with Kubernetes' environment for device selectors.

`compile_selector` and `check_selector` are what the rest of Drayman uses; `Environment` serves other variables and libraries.
"""

from drayman.cel.device import (
    MAX_COST,
    MAX_LENGTH,
    ProblemKind,
    Selector,
    SelectorProblem,
    check_selector,
    compile_selector,
)
from drayman.cel.device_types import Features
from drayman.cel.environment import Environment, Evaluation, Program
from drayman.cel.errors import CelError, CompileError, CostLimitError, EvaluationError, Issue
from drayman.cel.missing import MissingName, missing_names
from drayman.cel.reads import Group, Reads

__all__ = [
    "MAX_COST",
    "MAX_LENGTH",
    "CelError",
    "CompileError",
    "CostLimitError",
    "Environment",
    "Evaluation",
    "EvaluationError",
    "Features",
    "Group",
    "Issue",
    "MissingName",
    "ProblemKind",
    "Program",
    "Reads",
    "Selector",
    "SelectorProblem",
    "check_selector",
    "compile_selector",
    "missing_names",
]
