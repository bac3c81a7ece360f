"""Simulated hardware: nodes with the slices that the real drivers would publish for them."""

from drayman.drivers.profiles.choosing import (
    PROFILES,
    HardwareCluster,
    Wanted,
    parse_profiles,
    simulate,
)
from drayman.drivers.profiles.dgx import dgx_h100
from drayman.drivers.profiles.hardware import HardwareNode
from drayman.drivers.profiles.profile import Profile, ProfileError

__all__ = [
    "PROFILES",
    "HardwareCluster",
    "HardwareNode",
    "Profile",
    "ProfileError",
    "Wanted",
    "dgx_h100",
    "parse_profiles",
    "simulate",
]
