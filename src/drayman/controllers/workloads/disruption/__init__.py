"""PodDisruptionBudgets: how many pods may be evicted now."""

from __future__ import annotations

from drayman.controllers.workloads.disruption.controller import DisruptionController

__all__ = ["DisruptionController"]
