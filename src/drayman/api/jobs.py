"""batch/v1 Jobs, as far as their controller reads them. The pod template stays decoded JSON."""

from __future__ import annotations

from msgspec import field

from drayman.api.meta import LabelSelector, ObjectMeta
from drayman.api.struct import ApiStruct, Int32, Int64, Json, Timestamp, always


class ExitCodes(ApiStruct):
    container_name: str | None = None
    operator: str = ""
    values: tuple[Int32, ...] = ()


class PodConditionPattern(ApiStruct):
    type_: str = field(name="type", default="")
    status: str = ""


class PodFailureRule(ApiStruct):
    action: str = ""
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: tuple[PodConditionPattern, ...] = ()


class PodFailurePolicy(ApiStruct):
    rules: tuple[PodFailureRule, ...] = ()


class SuccessRule(ApiStruct):
    succeeded_indexes: str | None = None
    succeeded_count: Int32 | None = None


class SuccessPolicy(ApiStruct):
    rules: tuple[SuccessRule, ...] = ()


class JobSpec(ApiStruct):
    parallelism: Int32 = 1
    completions: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    backoff_limit: Int32 = 6
    backoff_limit_per_index: Int32 | None = None
    max_failed_indexes: Int32 | None = None
    selector: LabelSelector = LabelSelector()
    template: dict[str, Json] = field(default_factory=dict)
    ttl_seconds_after_finished: Int32 | None = None
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    pod_replacement_policy: str = ""
    managed_by: str | None = None


class JobCondition(ApiStruct, merge_key=("type",)):
    type_: str = field(name="type", default="")
    status: str = ""
    last_probe_time: Timestamp | None = None
    last_transition_time: Timestamp | None = None
    reason: str = ""
    message: str = ""


class UncountedPods(ApiStruct):
    """Pods by uid that have ended, are not in the counts yet, and still have or had the job's finalizer."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(ApiStruct):
    conditions: tuple[JobCondition, ...] = ()
    start_time: Timestamp | None = None
    completion_time: Timestamp | None = None
    active: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    terminating: Int32 | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedPods | None = None
    ready: Int32 | None = None


class Job(ApiStruct):
    api_version: str = always("batch/v1")
    kind: str = always("Job")
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()
