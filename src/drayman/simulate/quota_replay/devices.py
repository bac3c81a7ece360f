"""The devices of a scenario, and what pods that ask for them cost, with the limits that Kueue has."""

from __future__ import annotations

from typing import Final

from drayman.api import codec
from drayman.api.resource import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from drayman.api.struct import ApiStruct
from drayman.inventory.features import Features
from drayman.placement.followed import FOLLOWED, Followed
from drayman.placement.state import ClusterState
from drayman.quota.charging.mapping_rules import read_mappings
from drayman.quota.charging.pricing import DevicePricing
from drayman.quota.charging.rules import KUEUE, Gates
from drayman.simulate.quota_replay.scenario import Object, Scenario

_TYPES: Final[dict[str, type[ApiStruct]]] = {
    "DeviceClass": DeviceClass,
    "ResourceSlice": ResourceSlice,
    "ResourceClaimTemplate": ResourceClaimTemplate,
    "ResourceClaim": ResourceClaim,
}
_FOLLOWED: Final[dict[str, Followed]] = {
    kind.type.__name__: kind for kind in FOLLOWED if kind.type in _TYPES.values()
}


class ScenarioDevices:
    """What there is to be charged for."""

    def __init__(self, scenario: Scenario) -> None:
        """Raises MappingsError."""
        gates = Gates.of_kueue(scenario.gates)
        self._state = ClusterState(Features(), _wake_nothing)
        mappings = read_mappings(scenario.config, gates)
        self.pricing = DevicePricing(self._state, mappings, rules=KUEUE, gates=gates)

    @staticmethod
    def knows(kind: str) -> bool:
        """Whether prices depend on objects of a kind."""
        return kind in _FOLLOWED

    def set(self, value: Object) -> None:
        kind = value["kind"]
        _FOLLOWED[kind].put(self._state, codec.convert(_TYPES[kind], value))

    def remove(self, value: Object) -> None:
        kind = value["kind"]
        _FOLLOWED[kind].remove(self._state, codec.convert(_TYPES[kind], value))


def _wake_nothing(_: object) -> None:
    """Nothing is queued here."""
