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
    from drayman.api.core import Node
    from drayman.api.manifests import load
    from drayman.api.resource import DeviceClass, ResourceClaim, ResourceSlice
    from drayman.inventory import Features, Inventory, Ledger, NodeView

__version__ = "0.1.0"

__all__ = [
    "DeviceClass",
    "Exhausted",
    "Fault",
    "Features",
    "Inventory",
    "Ledger",
    "Node",
    "NodeView",
    "Outcome",
    "Plan",
    "Policy",
    "Refusal",
    "ResourceClaim",
    "ResourceSlice",
    "__version__",
    "allocate",
    "load",
]

_HOMES = {
    "DeviceClass": ("drayman.api.resource", "DeviceClass"),
    "Exhausted": ("drayman.allocator", "Exhausted"),
    "Fault": ("drayman.allocator", "Fault"),
    "Features": ("drayman.inventory", "Features"),
    "Inventory": ("drayman.inventory", "Inventory"),
    "Ledger": ("drayman.inventory", "Ledger"),
    "Node": ("drayman.api.core", "Node"),
    "NodeView": ("drayman.inventory", "NodeView"),
    "Outcome": ("drayman.allocator", "Outcome"),
    "Plan": ("drayman.allocator", "Plan"),
    "Policy": ("drayman.allocator", "Policy"),
    "Refusal": ("drayman.allocator", "Refusal"),
    "ResourceClaim": ("drayman.api.resource", "ResourceClaim"),
    "ResourceSlice": ("drayman.api.resource", "ResourceSlice"),
    "allocate": ("drayman.allocator", "search"),
    "load": ("drayman.api.manifests", "load"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'drayman' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
