"""What may have become better for pods that wait."""

from __future__ import annotations

from enum import Flag, auto


class Wake(Flag):
    """What may have become better, as far as waiting pods can be interested in it."""

    NODES = auto()  # nodes, and what pods on them leave free
    DEVICES = auto()  # devices, classes, taints, and what claims leave free
    VOLUMES = auto()  # volumes, storage classes, and what can still be provisioned
    ANYTHING = NODES | DEVICES | VOLUMES
