"""What AMD's driver takes: a configuration without a setting, so that a claim can say that it means this driver."""

from __future__ import annotations

from drayman.api.struct import always
from drayman.driver_configs.decoding import Config


class GpuConfig(Config):
    api_version: str = always("gpu.resource.amd.com/v1alpha1")
    kind: str = always("GpuConfig")
