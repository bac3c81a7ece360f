"""The parts of Kueue's Configuration that decisions about quota depend on."""

from __future__ import annotations

from typing import Final

from msgspec import field

from drayman.api import codec
from drayman.api.quantity import Quantity
from drayman.api.struct import ApiStruct, Int32, Json

FINAL_SHARE: Final = "LessThanOrEqualToFinalShare"
INITIAL_SHARE: Final = "LessThanInitialShare"
IGNORE_UNDECLARED: Final = "IgnoreUndeclared"
REPLACE: Final = "Replace"
EVICTION: Final = "Eviction"
KUEUE_NAMESPACE: Final = "kueue-system"
CONFIG_MAP: Final = "kueue-manager-config"
CONFIG_KEY: Final = "controller_manager_config.yaml"
"""Where an installation of Kueue has its Configuration: namespace, ConfigMap, and the key in it."""


class Transformation(ApiStruct, merge_key=("input",)):
    """Other resources that are charged for a resource, beside it or in its place."""

    input: str = ""
    strategy: str = "Retain"
    multiply_by: str = ""
    outputs: dict[str, Quantity] = field(default_factory=dict)


class ResourceSettings(ApiStruct):
    quota_check_strategy: str = "BlockUndeclared"
    exclude_resource_prefixes: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()


class FairSharingSettings(ApiStruct):
    preemption_strategies: tuple[str, ...] = ()

    @property
    def strategies(self) -> tuple[str, ...]:
        """In the order in which they are tried."""
        return self.preemption_strategies or (FINAL_SHARE, INITIAL_SHARE)


class RequeuingStrategy(ApiStruct):
    timestamp: str = EVICTION
    backoff_limit_count: Int32 | None = None
    backoff_base_seconds: Int32 = 60
    backoff_max_seconds: Int32 = 3600


class WaitForPodsReady(ApiStruct):
    timeout: str = "30m"
    recovery_timeout: str | None = None
    """As long as the timeout if it is left out; 0s: for ever."""
    block_admission: bool = False
    requeuing_strategy: RequeuingStrategy = RequeuingStrategy()


class AdmissionFairSharingSettings(ApiStruct):
    usage_half_life_time: str = "0s"
    usage_sampling_interval: str = "5m"
    resource_weights: dict[str, float] = field(default_factory=dict)
    """1 for those that are not listed."""


class QuotaSettings(ApiStruct):
    """What is left out has Kueue's default. Fair sharing is on if it is there at all."""

    resources: ResourceSettings = ResourceSettings()
    fair_sharing: FairSharingSettings | None = None
    wait_for_pods_ready: WaitForPodsReady = WaitForPodsReady()
    admission_fair_sharing: AdmissionFairSharingSettings | None = None


def settings_of(configuration: Json) -> QuotaSettings:
    """The settings in a Configuration. Raises DecodeError."""
    return codec.convert(QuotaSettings, configuration or {})
