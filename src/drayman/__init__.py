"""Drayman: Kubernetes Dynamic Resource Allocation in Python.

What is listed here is public and stays; everything below the packages is private by layout. Names are imported when first used, so that
the command line starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drayman.allocator import Exhausted, Fault, Outcome, Plan, Policy, Refusal
    from drayman.allocator import search as allocate
    from drayman.inventory import Features, Inventory, Ledger, NodeView

__version__ = "0.1.0"

__all__ = [
    "Exhausted",
    "Fault",
    "Features",
    "Inventory",
    "Ledger",
    "NodeView",
    "Outcome",
    "Plan",
    "Policy",
    "Refusal",
    "__version__",
    "allocate",
]

_HOMES = {
    "Exhausted": ("drayman.allocator", "Exhausted"),
    "Fault": ("drayman.allocator", "Fault"),
    "Features": ("drayman.inventory", "Features"),
    "Inventory": ("drayman.inventory", "Inventory"),
    "Ledger": ("drayman.inventory", "Ledger"),
    "NodeView": ("drayman.inventory", "NodeView"),
    "Outcome": ("drayman.allocator", "Outcome"),
    "Plan": ("drayman.allocator", "Plan"),
    "Policy": ("drayman.allocator", "Policy"),
    "Refusal": ("drayman.allocator", "Refusal"),
    "allocate": ("drayman.allocator", "search"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'drayman' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
