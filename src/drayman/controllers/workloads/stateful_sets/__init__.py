"""StatefulSets: pods with names, and volumes, of their own."""

from __future__ import annotations

from drayman.controllers.workloads.stateful_sets.controller import StatefulSetController

__all__ = ["StatefulSetController"]
