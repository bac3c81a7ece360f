"""Kinds that run pods or describe them: the groups apps and batch, and pod templates."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from drayman.apiserver.kinds import apps, batch
from drayman.apiserver.kinds.pods.table import has_condition
from drayman.apiserver.kinds.reading import at, items_at, map_at, number_at, text_at
from drayman.apiserver.kinds.replication_controllers import REPLICATION_CONTROLLER
from drayman.apiserver.kinds.stateful_sets import STATEFUL_SET
from drayman.apiserver.kinds.tables import (
    AGE,
    NAME,
    NONE,
    age_of,
    column,
    human_duration,
    joined_labels,
    moment_of,
    number,
    selector_cell,
    template_columns,
    text,
)
from drayman.apiserver.served.acting import Part, by, data, nothing_acts
from drayman.apiserver.served.resources import ApiResource, Subresource
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.subresources.scale import scale_subresource

_SCALE: Final = scale_subresource()
_TEMPLATE: Final = ("spec", "template")
_SELECTOR: Final = selector_cell("spec", "selector")
_JOB_STATES: Final = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)
"""Conditions of a job and the word for each, the most significant first; an empty condition stands for a job being deleted."""


def _ready(obj: Object, _now: datetime) -> str:
    return f"{number_at(obj, 'status', 'readyReplicas')}/{number_at(obj, 'spec', 'replicas')}"


def _job_status(job: Object, _now: datetime) -> str:
    for condition, word in _JOB_STATES:
        if condition and has_condition(job, condition):
            return word
        if not condition and at(job, "metadata", "deletionTimestamp") is not None:
            return word
    return "Running"


def _job_duration(job: Object, now: datetime) -> str:
    started = moment_of(at(job, "status", "startTime"))
    if started is None:
        return ""
    ended = moment_of(at(job, "status", "completionTime")) or now
    return human_duration((ended - started).total_seconds())


def _last_schedule(job: Object, now: datetime) -> str:
    last = at(job, "status", "lastScheduleTime")
    return age_of(last, now) if last else NONE


def _controller(revision: Object, _now: datetime) -> str:
    for owner in items_at(revision, "metadata", "ownerReferences"):
        if at(owner, "controller"):
            group, slash, _ = text_at(owner, "apiVersion").rpartition("/")
            kind = text_at(owner, "kind").lower() + (f".{group}" if slash else "")
            return f"{kind}/{text_at(owner, 'name')}"
    return NONE


_REPLICA_COLUMNS: Final = (
    NAME,
    column("Desired", number("spec", "replicas"), "integer"),
    column("Current", number("status", "replicas"), "integer"),
    column("Ready", number("status", "readyReplicas"), "integer"),
    AGE,
)
RESOURCES: Final = (
    ApiResource(
        kind="PodTemplate",
        acting=data("a template for other programs to use"),
        strategy=apps.POD_TEMPLATE,
        has_generation=True,
        columns=(
            NAME,
            *template_columns("template", wide=False),
            column(
                "Pod Labels",
                lambda obj, _now: joined_labels(map_at(obj, "template", "metadata", "labels")),
            ),
        ),
    ),
    ApiResource(
        kind="ReplicationController",
        acting=by(Part.CONTROLLERS, effect="its number of pods is kept"),
        short_names=("rc",),
        categories=("all",),
        strategy=REPLICATION_CONTROLLER,
        has_generation=True,
        default_propagation="Orphan",
        selectable={"status.replicas": lambda obj: str(number_at(obj, "status", "replicas"))},
        columns=(
            *_REPLICA_COLUMNS,
            *template_columns(
                *_TEMPLATE,
                selector=lambda obj, _now: joined_labels(map_at(obj, "spec", "selector")),
            ),
        ),
        subresources=(_SCALE, Subresource(name="status", strategy=apps.REPLICA_STATUS)),
    ),
    ApiResource(
        group="apps",
        kind="ControllerRevision",
        acting=by(
            Part.CONTROLLERS, effect="the history of StatefulSets and DaemonSets is kept in it"
        ),
        strategy=apps.CONTROLLER_REVISION,
        columns=(
            NAME,
            column("Controller", _controller),
            column("Revision", number("revision")),
            AGE,
        ),
    ),
    ApiResource(
        group="apps",
        kind="DaemonSet",
        acting=by(Part.CONTROLLERS, effect="a pod is kept on each of its nodes"),
        short_names=("ds",),
        categories=("all",),
        strategy=apps.DAEMON_SET,
        has_generation=True,
        columns=(
            NAME,
            column("Desired", number("status", "desiredNumberScheduled"), "integer"),
            column("Current", number("status", "currentNumberScheduled"), "integer"),
            column("Ready", number("status", "numberReady"), "integer"),
            column("Up-to-date", number("status", "updatedNumberScheduled"), "integer"),
            column("Available", number("status", "numberAvailable"), "integer"),
            column(
                "Node Selector",
                lambda obj, _now: joined_labels(map_at(obj, *_TEMPLATE, "spec", "nodeSelector")),
            ),
            AGE,
            *template_columns(*_TEMPLATE, selector=_SELECTOR),
        ),
        subresources=(Subresource(name="status", strategy=apps.DAEMON_SET_STATUS),),
    ),
    ApiResource(
        group="apps",
        kind="Deployment",
        acting=by(Part.CONTROLLERS, effect="is rolled out through ReplicaSets"),
        short_names=("deploy",),
        categories=("all",),
        strategy=apps.DEPLOYMENT,
        has_generation=True,
        columns=(
            NAME,
            column("Ready", _ready),
            column("Up-to-date", number("status", "updatedReplicas")),
            column("Available", number("status", "availableReplicas")),
            AGE,
            *template_columns(*_TEMPLATE, selector=_SELECTOR),
        ),
        subresources=(_SCALE, Subresource(name="status", strategy=apps.DEPLOYMENT_STATUS)),
    ),
    ApiResource(
        group="apps",
        kind="ReplicaSet",
        acting=by(Part.CONTROLLERS, effect="its number of pods is kept"),
        short_names=("rs",),
        categories=("all",),
        strategy=apps.REPLICA_SET,
        has_generation=True,
        columns=(*_REPLICA_COLUMNS, *template_columns(*_TEMPLATE, selector=_SELECTOR)),
        subresources=(_SCALE, Subresource(name="status", strategy=apps.REPLICA_STATUS)),
    ),
    ApiResource(
        group="apps",
        kind="StatefulSet",
        acting=by(Part.CONTROLLERS, effect="its pods and their volume claims are kept, in order"),
        short_names=("sts",),
        categories=("all",),
        strategy=STATEFUL_SET,
        has_generation=True,
        columns=(NAME, column("Ready", _ready), AGE, *template_columns(*_TEMPLATE)),
        subresources=(_SCALE, Subresource(name="status", strategy=apps.REPLICA_STATUS)),
    ),
    ApiResource(
        group="batch",
        kind="CronJob",
        acting=nothing_acts("no CronJob controller runs here: it starts no Jobs"),
        short_names=("cj",),
        categories=("all",),
        strategy=batch.CRON_JOB,
        has_generation=True,
        columns=(
            NAME,
            column("Schedule", text("spec", "schedule")),
            column("Timezone", text("spec", "timeZone", missing=NONE)),
            column("Suspend", lambda job, _now: str(bool(at(job, "spec", "suspend"))), "boolean"),
            column("Active", lambda obj, _now: len(items_at(obj, "status", "active")), "integer"),
            column("Last Schedule", _last_schedule),
            AGE,
            *template_columns(
                "spec",
                "jobTemplate",
                "spec",
                "template",
                selector=selector_cell("spec", "jobTemplate", "spec", "selector"),
            ),
        ),
        subresources=(Subresource(name="status", strategy=batch.CRON_JOB_STATUS),),
    ),
    ApiResource(
        group="batch",
        kind="Job",
        acting=by(Part.CONTROLLERS, effect="its pods are run to completion"),
        categories=("all",),
        strategy=batch.JOB,
        has_generation=True,
        default_propagation="Orphan",
        selectable={"status.successful": lambda job: str(number_at(job, "status", "succeeded"))},
        columns=(
            NAME,
            column("Status", _job_status),
            column("Completions", lambda job, _now: batch.completions_of(job)),
            column("Duration", _job_duration),
            AGE,
            *template_columns(*_TEMPLATE, selector=_SELECTOR),
        ),
        subresources=(Subresource(name="status", strategy=batch.JOB_STATUS),),
    ),
)
