"""Lists that are narrowed to a node, a driver, a namespace: what to say when nothing is left.

As kubectl has it, an object that is named and does not exist is an error, and a filter that matches nothing is not: then a sentence on
standard error says so, and what is printed as data is an empty list. A node is an object. Drivers are known by their slices only, and a
namespace may be out of sight.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from drayman.api.near_names import did_you_mean


def nothing_found(
    what: str,
    *,
    namespace: str | None = None,
    node: str | None = None,
    driver: str | None = None,
    drivers: Collection[str] = (),
    states: Sequence[str] = (),
) -> str:
    """A sentence for a list without rows: what was asked for, and the drivers that a mistyped one may have meant."""
    asked = [
        f"that are {' or '.join(states)}" if states else "",
        f"in namespace {namespace}" if namespace else "",
        f"of driver {driver}" if driver else "",
        f"on node {node}" if node else "",
    ]
    said = " ".join([f"No {what} found", *filter(None, asked)])
    meant = "" if driver is None or driver in drivers else did_you_mean(driver, drivers)
    return f"{said}{meant or '.'}"
