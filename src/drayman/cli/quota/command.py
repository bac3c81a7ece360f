"""`drayman quota`: what workloads cost in the quota of Kueue's queues."""

from __future__ import annotations

from typing import Final

import click

from drayman.cli.lazy import LazyGroup

_EPILOG: Final = """\b
Examples:
  drayman quota price -f job.yaml
  drayman quota price -f job.yaml -o json
  drayman quota diff --config new.yaml
"""


@click.group(
    cls=LazyGroup,
    lazy={"diff": "drayman.cli.quota.diff:diff", "price": "drayman.cli.quota.price:price"},
    epilog=_EPILOG,
)
def quota() -> None:
    """Answer questions about quota."""
