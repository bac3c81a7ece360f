"""NVIDIA's GPUs, and the kinds that its drivers install."""

from __future__ import annotations

from typing import Final

from drayman.api.struct import Json
from drayman.drivers.nvidia import mig
from drayman.drivers.nvidia.devices import MEBIBYTE, GpuModel

A100_40GB: Final = GpuModel(
    product="NVIDIA A100-SXM4-40GB",
    architecture="Ampere",
    compute_capability="8.0.0",
    memory_bytes=40960 * MEBIBYTE,
    mig_profiles=mig.A100_40GB,
    pci_id="0x20b0",
    divides_when_idle=False,
    numbered=True,
)
A100_80GB: Final = GpuModel(
    product="NVIDIA A100-SXM4-80GB",
    architecture="Ampere",
    compute_capability="8.0.0",
    memory_bytes=81920 * MEBIBYTE,
    mig_profiles=mig.A100_80GB,
    pci_id="0x20b2",
    divides_when_idle=False,
)
H100_SXM: Final = GpuModel(
    product="NVIDIA H100 80GB HBM3",
    architecture="Hopper",
    compute_capability="9.0.0",
    memory_bytes=81559 * MEBIBYTE,
    mig_profiles=mig.H100_80GB,
    pci_id="0x2330",
)
H200_SXM: Final = GpuModel(
    product="NVIDIA H200",
    architecture="Hopper",
    compute_capability="9.0.0",
    memory_bytes=143771 * MEBIBYTE,
    mig_profiles=mig.H200_141GB,
    pci_id="0x2335",
)
B200_SXM: Final = GpuModel(
    product="NVIDIA B200",
    architecture="Blackwell",
    compute_capability="10.0.0",
    memory_bytes=183359 * MEBIBYTE,
    mig_profiles=mig.B200_180GB,
    pci_id="0x2901",
)
GB200: Final = GpuModel(
    product="NVIDIA GB200",
    architecture="Blackwell",
    compute_capability="10.0.0",
    memory_bytes=189471 * MEBIBYTE,
    mig_profiles=mig.B200_180GB,
    pci_id="0x2941",
    addressing_mode="ATS",
)

MODELS: Final = (A100_40GB, A100_80GB, H100_SXM, H200_SXM, B200_SXM, GB200)


def _definition(kind: str, spec: dict[str, Json], status: dict[str, Json]) -> dict[str, Json]:
    plural = f"{kind.lower()}s"
    schema = {
        "type": "object",
        "properties": {"spec": spec, "status": status} if spec else {"status": status},
        "x-kubernetes-preserve-unknown-fields": True,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.resource.nvidia.com"},
        "spec": {
            "group": "resource.nvidia.com",
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
            },
            "versions": [
                {
                    "name": "v1beta1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


_READINESS: Final = {"type": "string", "enum": ["Ready", "NotReady"]}
_CHANNEL_SPEC: Final = {
    "type": "object",
    "required": ["resourceClaimTemplate"],
    "properties": {
        "allocationMode": {"type": "string", "enum": ["All", "Single"], "default": "Single"},
        "resourceClaimTemplate": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}},
        },
    },
}
DEFINITIONS: Final = (
    _definition(
        "ComputeDomain",
        {
            "type": "object",
            "required": ["channel"],
            "properties": {
                "numNodes": {"type": "integer", "minimum": 0, "default": 0},
                "channel": _CHANNEL_SPEC,
            },
            "x-kubernetes-validations": [
                {"rule": "self == oldSelf", "message": "A computeDomain.spec is immutable"}
            ],
        },
        {
            "type": "object",
            "properties": {
                "status": _READINESS,
                "nodes": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    },
                },
            },
        },
    ),
    _definition(
        "ComputeDomainClique",
        {},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    ),
)
"""ComputeDomain and ComputeDomainClique of `resource.nvidia.com`, so that a driver's manifests are accepted."""
