"""What may have improved for waiting pods."""

from __future__ import annotations

from enum import Flag, auto


class Wake(Flag):
    """What may have improved, by the kinds of change that waiting pods can be interested in."""

    NODES = auto()  # nodes, and what pods on them leave free
    DEVICES = auto()  # devices, classes, taints, and what claims leave free
    VOLUMES = auto()  # volumes, storage classes, and what can still be provisioned
    PODS = (
        auto()
    )  # where pods are, if so much has changed that hints (`hints`) do not say whom it helps
    ANYTHING = NODES | DEVICES | VOLUMES | PODS
    RESERVATIONS = auto()  # room that is reserved for others: concerns only those it holds back
