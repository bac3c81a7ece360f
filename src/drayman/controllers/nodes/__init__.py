"""The controllers that look after nodes, and after pods on nodes in trouble."""

from __future__ import annotations

from typing import Final

from drayman.controllers.nodes.eviction import TaintedNodeController
from drayman.controllers.nodes.lifecycle import NodeLifecycleController
from drayman.controllers.nodes.pod_collection import PodCollector

CONTROLLERS: Final = (NodeLifecycleController, TaintedNodeController, PodCollector)
"""All of them; each is made with a client and informers."""
