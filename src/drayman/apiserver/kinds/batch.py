"""Jobs and CronJobs. A job finds its pods by labels that the server generates, unless it brings its own selector."""

from __future__ import annotations

import re
from typing import Final

from drayman.api import formats
from drayman.api.struct import Json
from drayman.api.validation import FieldError
from drayman.api.validation.field_errors import invalid, not_supported, required
from drayman.apiserver.kinds.checks import MAX_INT32, label_selector, one_of, unchanged
from drayman.apiserver.kinds.job_policies import check_completion, check_policies
from drayman.apiserver.kinds.pods.defaults import default_template
from drayman.apiserver.kinds.pods.spec import check_template
from drayman.apiserver.kinds.reading import at, each_at, map_at, member, set_default, text_at
from drayman.apiserver.kinds.rules import Errors, Rules, StatusRules
from drayman.apiserver.kinds.workloads import check_numbers, job_warnings, selects
from drayman.apiserver.served.strategy import Context, Object

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
_UID_LABELS: Final = ("controller-uid", CONTROLLER_UID)
_NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
_COUNTS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_SETTLED: Final = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)
_RESTART_POLICIES: Final = ("OnFailure", "Never")
_CRON_NAME_LENGTH: Final = 52
"""Jobs get eleven more characters."""
_CONCURRENCY: Final = ("Allow", "Forbid", "Replace")
_CRON: Final = re.compile(
    r"(@(yearly|annually|monthly|weekly|daily|midnight|hourly|every \S+))|(\S+\s+){4}\S+"
)


def _default_job(obj: Object, _context: Context) -> None:
    spec = member(obj, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    spec.setdefault("parallelism", 1)
    per_index = spec.get("backoffLimitPerIndex") is not None
    spec.setdefault("backoffLimit", MAX_INT32 if per_index else 6)
    labels = at(spec, "template", "metadata", "labels")
    metadata = member(obj, "metadata")
    if labels and not metadata.get("labels"):
        # The same object, so that the labels generated for the pods become the job's too.
        metadata["labels"] = labels
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    on_failure = "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", on_failure)
    spec.setdefault("manualSelector", False)
    _default_failure_policy(spec)
    default_template(member(spec, "template"))


def _default_failure_policy(spec: Object) -> None:
    for _, rule in each_at(spec, "", "podFailurePolicy", "rules"):
        for _, pattern in each_at(rule, "", "onPodConditions"):
            set_default(pattern, "status", "True")


def _prepare_job(obj: Object, _context: Context) -> None:
    """The labels of a job's pods, by which only this job finds them."""
    spec = member(obj, "spec")
    if spec.get("manualSelector"):
        return
    name, uid = text_at(obj, "metadata", "name"), text_at(obj, "metadata", "uid")
    labels = member(member(member(spec, "template"), "metadata"), "labels")
    for keys, value in ((_NAME_LABELS, name), (_UID_LABELS, uid)):
        for key in keys:
            labels.setdefault(key, value)
    if not at(obj, "metadata", "labels"):
        obj["metadata"]["labels"] = labels
    member(member(spec, "selector"), "matchLabels").setdefault(CONTROLLER_UID, uid)


def _check_job(obj: Object, _context: Context) -> Errors:
    spec = map_at(obj, "spec")
    yield from _made_up_selector(obj)
    yield from _job_spec(spec, "spec")
    if spec.get("selector") is None:
        yield required("spec.selector")
    yield from label_selector(spec.get("selector"), "spec.selector")
    labels = map_at(spec, "template", "metadata", "labels")
    if selects(spec.get("selector"), labels) is False:
        detail = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", labels, detail)
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions:
        longest = f"{text_at(obj, 'metadata', 'name')}-{completions - 1}"
        if formats.dns_label_problems(longest):
            detail = f"will not able to create pod with invalid DNS label: {longest}"
            yield invalid("metadata.name", text_at(obj, "metadata", "name"), detail)


def _made_up_selector(obj: Object) -> Errors:
    """A client cannot choose the labels and the selector that the server generates."""
    spec = map_at(obj, "spec")
    if spec.get("manualSelector") or spec.get("selector") is None:
        return
    name, uid = text_at(obj, "metadata", "name"), text_at(obj, "metadata", "uid")
    labels = map_at(spec, "template", "metadata", "labels")
    wanted = dict.fromkeys(_NAME_LABELS, name) | dict.fromkeys(_UID_LABELS, uid)
    for key, value in wanted.items():
        path = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            yield required(path, f"must be '{value}'")
        elif labels[key] != value:
            yield invalid(path, labels, f"must be '{value}'")
    if selects(spec["selector"], wanted) is False:
        yield invalid("spec.selector", spec["selector"], "`selector` not auto-generated")


def _job_spec(spec: Object, path: str) -> Errors:
    yield from check_numbers(spec, path, *_COUNTS)
    yield from check_completion(spec, path)
    yield from check_policies(spec, path)
    yield from check_template(spec.get("template"), f"{path}.template")
    policy = at(spec, "template", "spec", "restartPolicy")
    where = f"{path}.template.spec.restartPolicy"
    if policy in (None, "", "Always"):
        yield required(where, 'valid values: "OnFailure", "Never"')
    elif policy not in _RESTART_POLICIES:
        yield not_supported(where, policy, _RESTART_POLICIES)
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        yield invalid(where, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _check_job_update(new: Object, old: Object, _context: Context) -> Errors:
    for name in _SETTLED:
        yield from unchanged(new, old, "spec", name)
    if at(new, "spec", "completionMode") != "Indexed":
        yield from unchanged(new, old, "spec", "completions")
    elif at(new, "spec", "completions") not in (
        at(old, "spec", "completions"),
        at(new, "spec", "parallelism"),
    ):
        detail = "can only be modified in tandem with spec.parallelism"
        yield invalid("spec.completions", at(new, "spec", "completions"), detail)
    if not _may_change_template(old):
        yield from unchanged(new, old, "spec", "template")


def _may_change_template(old: Object) -> bool:
    """The scheduling rules of pods can still change while a job is suspended and has not started."""
    return bool(at(old, "spec", "suspend")) and not at(old, "status", "startTime")


def _default_cron_job(obj: Object, _context: Context) -> None:
    spec = member(obj, "spec")
    set_default(spec, "concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    job = member(member(spec, "jobTemplate"), "spec")
    default_template(member(job, "template"))
    _default_failure_policy(job)


def _check_cron_job(obj: Object, _context: Context) -> Errors:
    spec = map_at(obj, "spec")
    yield from _schedule(text_at(spec, "schedule"))
    yield from one_of(spec.get("concurrencyPolicy"), "spec.concurrencyPolicy", _CONCURRENCY)
    yield from check_numbers(
        spec,
        "spec",
        "startingDeadlineSeconds",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
    )
    yield from _job_spec(map_at(spec, "jobTemplate", "spec"), "spec.jobTemplate.spec")
    name = text_at(obj, "metadata", "name")
    if len(name) > _CRON_NAME_LENGTH:
        detail = f"must be no more than {_CRON_NAME_LENGTH} characters"
        yield invalid("metadata.name", name, detail)


def _schedule(schedule: str) -> Errors:
    if not schedule:
        yield required("spec.schedule")
    elif not _CRON.fullmatch(schedule.strip()):
        count = len(schedule.split())
        detail = f"expected exactly 5 fields, found {count}: {_fields(schedule)}"
        yield invalid("spec.schedule", schedule, detail)


def _fields(schedule: str) -> str:
    return f"[{' '.join(schedule.split())}]"


class JobStatusRules(StatusRules):
    """The status of jobs."""

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        errors = super().validate_update(new, old, context)
        return [
            *errors,
            *check_numbers(at(new, "status"), "status", "active", "succeeded", "failed"),
        ]


def completions_of(job: Json) -> str:
    """How many pods of a job are finished, and of how many."""
    done, wanted = at(job, "status", "succeeded") or 0, at(job, "spec", "completions")
    parallel = at(job, "spec", "parallelism") or 0
    if wanted is not None:
        return f"{done}/{wanted}"
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


JOB: Final = Rules(
    defaults=_default_job,
    prepare=_prepare_job,
    checks=_check_job,
    update_checks=_check_job_update,
    warns=job_warnings,
)
JOB_STATUS: Final = JobStatusRules()
CRON_JOB: Final = Rules(defaults=_default_cron_job, checks=_check_cron_job)
CRON_JOB_STATUS: Final = StatusRules()
