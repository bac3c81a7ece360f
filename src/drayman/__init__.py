"""Drayman: Kubernetes Dynamic Resource Allocation in Python.

What is listed here is public and stable; everything below the packages is private by layout. Names are imported when first used, so that
the command line starts quickly.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drayman.allocator import Exhausted, Fault, Outcome, Plan, Policy, Refusal
    from drayman.allocator import search as allocate
    from drayman.api.checking import load
    from drayman.api.core import Node
    from drayman.api.resource import DeviceClass, ResourceClaim, ResourceSlice
    from drayman.cluster.errors import ClusterError
    from drayman.explain.answer import Explanation
    from drayman.inventory import Features, Inventory, Ledger, NodeView
    from drayman.questions.asking import Cluster, capacity, explain, plan
    from drayman.questions.errors import QuestionError
    from drayman.questions.plan import PlanAnswer
    from drayman.simulate.capacity import Capacity

__version__ = "0.1.0"

__all__ = [
    "Capacity",
    "Cluster",
    "ClusterError",
    "DeviceClass",
    "Exhausted",
    "Explanation",
    "Fault",
    "Features",
    "Inventory",
    "Ledger",
    "Node",
    "NodeView",
    "Outcome",
    "Plan",
    "PlanAnswer",
    "Policy",
    "QuestionError",
    "Refusal",
    "ResourceClaim",
    "ResourceSlice",
    "__version__",
    "allocate",
    "capacity",
    "explain",
    "load",
    "plan",
]

_HOMES = {
    "Capacity": ("drayman.simulate.capacity", "Capacity"),
    "Cluster": ("drayman.questions.asking", "Cluster"),
    "ClusterError": ("drayman.cluster.errors", "ClusterError"),
    "DeviceClass": ("drayman.api.resource", "DeviceClass"),
    "Exhausted": ("drayman.allocator", "Exhausted"),
    "Explanation": ("drayman.explain.answer", "Explanation"),
    "Fault": ("drayman.allocator", "Fault"),
    "Features": ("drayman.inventory", "Features"),
    "Inventory": ("drayman.inventory", "Inventory"),
    "Ledger": ("drayman.inventory", "Ledger"),
    "Node": ("drayman.api.core", "Node"),
    "NodeView": ("drayman.inventory", "NodeView"),
    "Outcome": ("drayman.allocator", "Outcome"),
    "Plan": ("drayman.allocator", "Plan"),
    "PlanAnswer": ("drayman.questions.plan", "PlanAnswer"),
    "Policy": ("drayman.allocator", "Policy"),
    "QuestionError": ("drayman.questions.errors", "QuestionError"),
    "Refusal": ("drayman.allocator", "Refusal"),
    "ResourceClaim": ("drayman.api.resource", "ResourceClaim"),
    "ResourceSlice": ("drayman.api.resource", "ResourceSlice"),
    "allocate": ("drayman.allocator", "search"),
    "capacity": ("drayman.questions.asking", "capacity"),
    "explain": ("drayman.questions.asking", "explain"),
    "load": ("drayman.api.checking", "load"),
    "plan": ("drayman.questions.asking", "plan"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'drayman' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


class _Surface(ModuleType):
    """This package, in which `explain` is the function, although a package below has the same name.

    Importing a package sets its name in its parent. Public names keep their meaning regardless: `drayman.explain(...)` asks a cluster, and
    what the package contains is imported from it (`from drayman.explain import explain_pod`).
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Surface
