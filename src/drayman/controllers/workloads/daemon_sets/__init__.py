"""DaemonSets: one pod on each node that it fits."""

from __future__ import annotations

from drayman.controllers.workloads.daemon_sets.controller import DaemonSetController

__all__ = ["DaemonSetController"]
