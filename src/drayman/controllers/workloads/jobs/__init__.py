"""Jobs: pods that run to their end, counted once each."""

from __future__ import annotations

from drayman.controllers.workloads.jobs.controller import JobController, JobOptions
from drayman.controllers.workloads.jobs.failures import BackoffTimes

__all__ = ["BackoffTimes", "JobController", "JobOptions"]
