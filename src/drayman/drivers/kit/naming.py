"""What a driver can be called."""

from __future__ import annotations

from drayman.drivers.kit.errors import KitError
from drayman.plugins.naming import name_problem


def require_name(name: str) -> None:
    """Raises KitError unless a driver can have the name."""
    problem = name_problem(name)
    if problem:
        raise KitError(problem)
