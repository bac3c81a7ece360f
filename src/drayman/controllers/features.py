"""Which optional parts of the controllers are on: Kubernetes' feature gates, off here as they are there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

WORKLOAD_WITH_JOB: Final = "WorkloadWithJob"
GATES: Final = (WORKLOAD_WITH_JOB,)
"""The gates that can be switched on."""


@dataclass(frozen=True, slots=True)
class ControllerFeatures:
    """Feature gates that change what controllers do."""

    groups_of_jobs: bool = False
    """Whether the pods of a Job that all run at the same time get a Workload and a PodGroup."""

    @classmethod
    def from_gates(cls, gates: Collection[str]) -> ControllerFeatures:
        """The features of a cluster on which exactly these gates are on."""
        return cls(groups_of_jobs=WORKLOAD_WITH_JOB in gates)
