"""What the controller of NVIDIA's compute domains does, as far as pods can see it.

A ComputeDomain names a claim template that workloads take their channel from, and the controller makes it. Its status says on which nodes
channels of the domain are in use, and is Ready once there are as many as asked for. Daemons are not simulated: a channel works at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any, Final

from drayman.api.resource import ResourceClaim
from drayman.cluster.cache import Cache
from drayman.cluster.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    NotFoundError,
)
from drayman.cluster.options import WriteOptions
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import RESOURCE_CLAIM_TEMPLATES, JsonObject, generic
from drayman.cluster.together import Bundle
from drayman.cluster.writes import CreateWrite, PatchWrite, Write
from drayman.node.reporting import MANAGER
from drayman.node.simulated.pod_status import node_address

_log: Final = logging.getLogger(__name__)

DOMAINS: Final = generic("resource.nvidia.com/v1beta1", "computedomains", "ComputeDomain")
DEFINITION: Final = "computedomains.resource.nvidia.com"
DRIVER: Final = "compute-domain.nvidia.com"
CHANNEL_CLASS: Final = "compute-domain-default-channel.nvidia.com"
DOMAIN_LABEL: Final = "resource.nvidia.com/computeDomain"
_TEMPLATES: Final = RESOURCE_CLAIM_TEMPLATES.as_values()
_OPTIONS: Final = WriteOptions(field_manager=MANAGER)


def domain_changes(domain: JsonObject, claims: Cache[ResourceClaim]) -> Iterator[Bundle]:
    """What to write to bring a domain to the state its controller leaves it in. A template that exists is not an error."""
    if domain["metadata"].get("deletionTimestamp") is not None:
        return
    yield _change(CreateWrite(_TEMPLATES, _template(domain), None, _OPTIONS))
    status = _status(domain, claims)
    if status != domain.get("status"):
        meta = domain["metadata"]
        patch = merge_patch({"metadata": {"uid": meta["uid"]}, "status": status})
        write = PatchWrite(DOMAINS, meta["name"], patch, meta["namespace"], "status", _OPTIONS)
        yield _change(write)


def domain_of(claim: ResourceClaim) -> str:
    """The uid of the domain whose channel a claim asks for; empty for all other claims."""
    for config in claim.spec.devices.config:
        if config.opaque is not None and config.opaque.driver == DRIVER:
            parameters: Any = config.opaque.parameters
            if isinstance(parameters, dict):
                return str(parameters.get("domainID", ""))
    return ""


def _change(write: Write) -> Bundle:
    return Bundle((write,), _leave_it)


def _leave_it(error: ClusterError) -> None:
    """The template already exists, or the domain is gone; anything else is logged."""
    if not isinstance(error, AlreadyExistsError | NotFoundError | ConflictError):
        _log.warning("a compute domain could not be served: %s", error)


def _template(domain: JsonObject) -> JsonObject:
    meta = domain["metadata"]
    channel = domain["spec"]["channel"]
    parameters = {
        "apiVersion": DOMAINS.api_version,
        "kind": "ComputeDomainChannelConfig",
        "domainID": meta["uid"],
        "allocationMode": channel.get("allocationMode", "Single"),
    }
    owner = {
        "apiVersion": DOMAINS.api_version,
        "kind": DOMAINS.kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    devices = {
        "requests": [{"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}],
        "config": [
            {"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": parameters}}
        ],
    }
    return {
        "apiVersion": _TEMPLATES.api_version,
        "kind": _TEMPLATES.kind,
        "metadata": {
            "name": channel["resourceClaimTemplate"]["name"],
            "namespace": meta["namespace"],
            "labels": {DOMAIN_LABEL: meta["uid"]},
            "ownerReferences": [owner],
        },
        "spec": {"metadata": {"labels": {DOMAIN_LABEL: meta["uid"]}}, "spec": {"devices": devices}},
    }


def _status(domain: JsonObject, claims: Iterable[ResourceClaim]) -> JsonObject:
    uid = domain["metadata"]["uid"]
    names = sorted(
        {
            result.pool
            for claim in claims
            if domain_of(claim) == uid
            for result in claim.status.results
            if result.driver == DRIVER
        }
    )
    nodes = [
        {"name": name, "ipAddress": node_address(name), "cliqueID": "", "status": "Ready"}
        for name in names
    ]
    wanted = domain["spec"].get("numNodes", 0)
    return {"status": "Ready" if len(nodes) >= wanted else "NotReady", "nodes": nodes}
