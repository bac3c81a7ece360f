"""What a driver can be called: the rule for drivers that begin, and for plugins that introduce themselves to a node."""

from __future__ import annotations

from typing import Final

from drayman.api.formats import dns_subdomain_problems

_LONGEST: Final = 63


def name_problem(name: str) -> str:
    """Why no driver can have a name; empty if one can."""
    shown = repr(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}...")
    problems = list(dns_subdomain_problems(name)) if name else ["it is empty"]
    if len(name) > _LONGEST:
        problems.append(f"must be no more than {_LONGEST} characters")
    return f"{shown} cannot name a driver: {'; '.join(problems)}" if problems else ""
