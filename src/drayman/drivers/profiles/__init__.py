"""Simulated hardware: nodes with the slices that the real drivers would publish for them."""

from drayman.drivers.profiles.dgx import dgx_h100
from drayman.drivers.profiles.hardware import HardwareNode

__all__ = ["HardwareNode", "dgx_h100"]
