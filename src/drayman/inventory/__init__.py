"""Devices as they are now, and who holds them. Pure: no I/O, no clock."""

from drayman.inventory.features import Features
from drayman.inventory.identity import DeviceId
from drayman.inventory.inventory import Inventory
from drayman.inventory.ledger import Holding, Ledger
from drayman.inventory.view import NodeView

__all__ = ["DeviceId", "Features", "Holding", "Inventory", "Ledger", "NodeView"]
