"""Lists that are filtered by node, driver or namespace: what to say when nothing is left.

As with kubectl, naming an object that does not exist is an error, and a filter that matches nothing is not: a sentence on standard error
says so, and the data printed is an empty list. A node is an object. Drivers are known only by their slices, and a namespace may not be
visible.
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
    """A sentence for a list without rows: what was asked for, and the drivers that may have been meant by a mistyped name."""
    asked = [
        f"that are {' or '.join(states)}" if states else "",
        f"in namespace {namespace}" if namespace else "",
        f"of driver {driver}" if driver else "",
        f"on node {node}" if node else "",
    ]
    said = " ".join([f"No {what} found", *filter(None, asked)])
    meant = "" if driver is None or driver in drivers else did_you_mean(driver, drivers)
    return f"{said}{meant or '.'}"
