"""The public surface of the package."""

from __future__ import annotations

import drayman.cel as package


def test_exported_names() -> None:
    """The package exports what its users need, and only that."""
    assert package.__all__ == [
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
    assert all(hasattr(package, name) for name in package.__all__)
