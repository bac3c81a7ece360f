"""Taints of devices, their own and those of rules: which devices are left for a request with tolerations, and when pods have to leave."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from drayman.api.resource import DeviceTaint, DeviceTaintRule, DeviceToleration
from drayman.api.times import moment_of
from drayman.inventory.device import DeviceRecord

NO_EXECUTE: Final = "NoExecute"
_BLOCKING_EFFECTS: Final = ("NoSchedule", NO_EXECUTE)
_AT_ONCE: Final = datetime.min.replace(tzinfo=UTC)
_Taints: TypeAlias = tuple[tuple[str, str, str], ...]  # key, value and effect of each


class Taints:
    """The taints of some devices under some rules. Worked out on first use."""

    __slots__ = ("_groups", "_records", "_tolerated", "rules")

    def __init__(self, records: Sequence[DeviceRecord], rules: tuple[DeviceTaintRule, ...]) -> None:
        self._records = records
        self.rules = rules
        self._groups: dict[_Taints, int] | None = None
        self._tolerated: dict[tuple[DeviceToleration, ...], int] = {}

    def tolerated(self, tolerations: tuple[DeviceToleration, ...]) -> int:
        """The devices whose taints, if they have any that block, are all tolerated."""
        found = self._tolerated.get(tolerations)
        if found is None:
            found = (1 << len(self._records)) - 1
            for taints, devices in self._grouped().items():
                if not all(any(tolerates(t, taint) for t in tolerations) for taint in taints):
                    found &= ~devices
            self._tolerated[tolerations] = found
        return found

    def _grouped(self) -> dict[_Taints, int]:
        if self._groups is None:
            self._groups = {}
            for position, record in enumerate(self._records):
                if (record.device.taints or self.rules) and (taints := self.blocking(record)):
                    self._groups[taints] = self._groups.get(taints, 0) | 1 << position
        return self._groups

    def blocking(self, record: DeviceRecord) -> _Taints:
        """Key, value and effect of each taint that keeps a device from requests that do not tolerate it."""
        own: tuple[DeviceTaint, ...] = record.device.taints
        if self.rules:
            own += tuple(rule.spec.taint for rule in self.rules if selects(rule, *record.id))
        return tuple((t.key, t.value, t.effect) for t in own if t.effect in _BLOCKING_EFFECTS)

    def untolerated(
        self, record: DeviceRecord, tolerations: tuple[DeviceToleration, ...]
    ) -> _Taints:
        """The taints that keep a device from a request with these tolerations."""
        return tuple(
            taint
            for taint in self.blocking(record)
            if not any(tolerates(t, taint) for t in tolerations)
        )


class Untainted(Taints):
    """Some devices as if they had no taints."""

    __slots__ = ("_everything",)

    def __init__(self, everything: int) -> None:
        super().__init__((), ())
        self._everything = everything

    def tolerated(self, tolerations: tuple[DeviceToleration, ...]) -> int:
        return self._everything


def selects(rule: DeviceTaintRule, driver: str, pool: str, device: str) -> bool:
    """Whether a rule is about a device. An empty selector selects all devices, an absent one none, as the API says.

    In 1.36 the scheduler takes an absent one for every device and the eviction controller for none.
    """
    selector = rule.spec.device_selector
    return (
        selector is not None
        and selector.driver in (None, driver)
        and selector.pool in (None, pool)
        and selector.device in (None, device)
    )


def eviction_time(taint: DeviceTaint, tolerations: Iterable[DeviceToleration]) -> datetime | None:
    """From when on a taint of a device evicts the pods that have it; None for never. The shortest of several tolerations counts.

    Unlike in Kubernetes 1.36, a toleration without effect tolerates NoExecute too, as it does when the pod is placed.
    """
    if taint.effect != NO_EXECUTE:
        return None
    seconds: list[int] = []
    for toleration in tolerations:
        if not tolerates(toleration, (taint.key, taint.value, taint.effect)):
            continue
        # The API gives a meaning to the seconds only where the toleration is about NoExecute and nothing else.
        if toleration.toleration_seconds is None or toleration.effect != NO_EXECUTE:
            return None
        seconds.append(max(toleration.toleration_seconds, 0))
    if taint.time_added is None:
        return _AT_ONCE
    return moment_of(taint.time_added) + timedelta(seconds=min(seconds, default=0))


def tolerates(toleration: DeviceToleration, taint: tuple[str, str, str]) -> bool:
    """Whether a toleration is for a taint of this key, value and effect. An absent effect or key stands for all of them."""
    key, value, effect = taint
    if toleration.effect and toleration.effect != effect:
        return False
    if toleration.key and toleration.key != key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == value
