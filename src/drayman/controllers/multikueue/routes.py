"""Which check hands a workload to which workers, and whether checks and clusters can be used: Active conditions, as Kueue writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from drayman.api import codec
from drayman.api.custom_groups import KUEUE, spec_of
from drayman.api.errors import DecodeError
from drayman.api.kueue import (
    AdmissionCheck,
    AdmissionCheckSpec,
    ConditionsStatus,
    MultiKueueCluster,
    MultiKueueConfig,
    MultiKueueConfigSpec,
    QueueObject,
    status_of,
)
from drayman.api.times import seconds_of
from drayman.cluster.client import Client
from drayman.cluster.informers import Informers
from drayman.cluster.patches import json_patch
from drayman.cluster.resources import JsonObject, Resource, typed
from drayman.controllers.multikueue.dispatcher import Route
from drayman.controllers.multikueue.links import Link
from drayman.controllers.quota.book import Known
from drayman.workloads.dispatching.names import CONFIG_KIND, CONTROLLER
from drayman.workloads.queued.conditions import with_condition

CHECKS: Final = typed(AdmissionCheck)
CONFIGS: Final = typed(MultiKueueConfig)
CLUSTERS: Final = typed(MultiKueueCluster)
ACTIVE: Final = "Active"


class Routes:
    """Checks of ours and the clusters that they name."""

    def __init__(self, informers: Informers) -> None:
        self.checks = informers.informer(CHECKS).cache
        self._configs = informers.informer(CONFIGS).cache

    def of(self, known: Known) -> Route | None:
        """Where a workload goes: by the first of its checks that is ours."""
        for state in known.status.admission_checks:
            check = self.checks.get(state.name)
            if check is not None and is_ours(check):
                found = self.clusters_of(check)
                return Route(state.name, found if isinstance(found, tuple) else ())
        return None

    def clusters_of(self, check: AdmissionCheck) -> tuple[str, ...] | str:
        """The clusters that a check hands work to, or why it has none."""
        parameters = spec_of(AdmissionCheckSpec, check).parameters
        if parameters is None:
            return "spec.parameters is missing: it has to name a MultiKueueConfig"
        if (parameters.api_group, parameters.kind) != (KUEUE, CONFIG_KIND):
            return f"spec.parameters: {parameters.kind} of {parameters.api_group!r} is not a MultiKueueConfig of {KUEUE}"
        config = self._configs.get(parameters.name)
        if config is None:
            return f"there is no MultiKueueConfig {parameters.name}"
        try:
            return tuple(spec_of(MultiKueueConfigSpec, config).clusters)
        except DecodeError as error:
            return f"MultiKueueConfig {parameters.name}: {error}"


def is_ours(check: AdmissionCheck) -> bool:
    try:
        return spec_of(AdmissionCheckSpec, check).controller_name == CONTROLLER
    except DecodeError:
        return False


def condition_of_check(
    clusters: tuple[str, ...] | str, links: Mapping[str, Link]
) -> tuple[bool, str, str]:
    """Whether a check can be used, the reason, and in words."""
    if isinstance(clusters, str):
        return False, "BadConfig", clusters
    missing = [name for name in clusters if name not in links or links[name].is_removed]
    silent = [name for name in clusters if name not in missing and links[name].worker is None]
    problems = [
        f"{what} clusters: {', '.join(names)}"
        for what, names in (("Missing", missing), ("Inactive", silent))
        if names
    ]
    if len(missing) + len(silent) == len(clusters):
        return False, "NoUsableClusters", "; ".join(problems) or "No clusters"
    if problems:
        return True, "SomeActiveClusters", "; ".join(problems)
    return True, ACTIVE, "The admission check is active"


def condition_of_cluster(link: Link | None, problem: str) -> tuple[bool, str, str] | None:
    """Whether a worker can be used; None while that is not known."""
    if problem:
        return False, "BadClusterSource", problem
    if link is None or (link.worker is None and link.trouble is None):
        return None
    if link.worker is not None:
        return True, ACTIVE, "Connected"
    assert link.trouble is not None
    return False, link.trouble.reason, link.trouble.message


def silent_since(cluster: MultiKueueCluster) -> float | None:
    """Since when a worker does not answer, as an earlier process has written it down."""
    for each in _status(cluster).conditions:
        if each.type_ == ACTIVE and each.status == "False":
            return seconds_of(each.last_transition_time)
    return None


def _status(value: QueueObject) -> ConditionsStatus:
    try:
        return status_of(ConditionsStatus, value)
    except DecodeError:
        return ConditionsStatus()


async def write_condition(
    client: Client,
    resource: Resource[Any],
    value: QueueObject,
    said: tuple[bool, str, str],
    now: float,
) -> None:
    """Writes an Active condition, if it says something new."""
    old, metadata = _status(value), value.metadata
    conditions = with_condition(old.conditions, ACTIVE, *said, now, metadata.generation)
    if conditions == old.conditions:
        return
    operations: list[JsonObject] = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.resource_version},
        {
            "op": "add",
            "path": "/status",
            "value": codec.to_dict(ConditionsStatus(conditions=conditions)),
        },
    ]
    await client.patch(resource, metadata.name, json_patch(operations), subresource="status")
