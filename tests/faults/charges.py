"""What queued work costs, as the cluster is told and as the checker counts: by the template of a claim, and by the CPUs of containers."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Final

from faults.snapshot import Object, amount

GPUS: Final = "example.com/gpus"
PARTS: Final = "example.com/parts"
CONFIGURATION: Final[Object] = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    # A clock that leaps ahead ends the time that pods have to become ready; a minute of back-off would only be waited out.
    "waitForPodsReady": {"requeuingStrategy": {"backoffBaseSeconds": 1, "backoffMaxSeconds": 1}},
    "resources": {
        "deviceClassMappings": [
            {"name": GPUS, "deviceClassNames": ["gpu.example.com"]},
            {"name": PARTS, "deviceClassNames": ["mig.nvidia.com"]},
        ]
    },
}
CHARGES: Final = {
    "gpu": {GPUS: 1},
    "two-gpus": {GPUS: 2},
    "share": {GPUS: 1},
    "part": {PARTS: 1},
}
"""Of a claim, by the name of its template."""


def charge_of(pod_set: Object, pods: int) -> dict[str, Fraction]:
    """What so many pods of a pod set cost."""
    found: Counter[str] = Counter()
    spec = pod_set["template"]["spec"]
    for container in spec["containers"]:
        requests = container.get("resources", {}).get("requests") or {}
        if "cpu" in requests:
            found["cpu"] += amount(requests["cpu"])  # type: ignore[assignment]
    for entry in spec.get("resourceClaims") or ():
        found.update(CHARGES[entry["resourceClaimTemplateName"]])
    return {resource: Fraction(each) * pods for resource, each in found.items()}
