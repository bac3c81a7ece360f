"""Simulated nodes: what a kubelet and the drivers beside it do, without a machine.

`SimulatedNodes` registers nodes, publishes what their drivers would, and moves the pods that are bound to them through their phases. It
touches no node that does not carry its label.
"""

from drayman.node.simulated.model import SimulatedNode, Timing, is_failed
from drayman.node.simulated.publication import Report
from drayman.node.simulated.simulation import SimulatedNodes

__all__ = ["Report", "SimulatedNode", "SimulatedNodes", "Timing", "is_failed"]
