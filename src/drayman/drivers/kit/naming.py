"""What a driver can be called."""

from __future__ import annotations

from typing import Final

from drayman.api.formats import dns_subdomain_problems
from drayman.drivers.kit.errors import KitError

_LONGEST: Final = 63


def require_name(name: str) -> None:
    """Raises KitError unless a driver can have the name."""
    problems = list(dns_subdomain_problems(name))
    if len(name) > _LONGEST:
        problems.append(f"must be no more than {_LONGEST} characters")
    if problems:
        raise KitError(f"{name!r} cannot name a driver: {'; '.join(problems)}")
