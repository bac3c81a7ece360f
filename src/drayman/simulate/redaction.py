"""What a snapshot leaves out: everything that is private and does not affect where pods go.

That is environment variables, commands and whatever else is in containers, annotations that neither belong to Kubernetes or Drayman nor
state a gang, and the opaque data that claims pass to drivers or drivers publish about devices: these can contain anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from drayman.api import codec
from drayman.api.alignment import DRIVER, AlignmentError, ladder_of_parameters
from drayman.api.core import Container, Pod, PodSpec
from drayman.api.errors import DecodeError
from drayman.api.jobs import Job
from drayman.api.kueue_workload import Workload as QueuedWorkload
from drayman.api.meta import ObjectMeta
from drayman.api.resource import (
    DeviceAllocationConfiguration,
    DeviceClaimConfiguration,
    DeviceClass,
    DeviceClassConfiguration,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
)
from drayman.api.struct import ApiStruct, Json
from drayman.api.workloads import DaemonSet, Deployment, ReplicaSet, StatefulSet
from drayman.placement.gangs.membership import STATING_GANGS

_PUBLIC_DOMAINS: Final = ("kubernetes.io", "k8s.io", "drayman.dev")
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Holds the object as it was applied, including the environment."""

_OF_QUEUES: Final = (
    "apiVersion",
    "kind",
    "resources",
    "fairSharing",
    "admissionFairSharing",
    "waitForPodsReady",
    "featureGates",
)

_Config = TypeVar(
    "_Config",
    DeviceClassConfiguration,
    DeviceClaimConfiguration,
    DeviceAllocationConfiguration,
)


def cleaner_of(type_: type[ApiStruct]) -> Callable[[Any], ApiStruct]:
    """The function that removes the private parts from an object of this type."""
    return _CLEANERS.get(type_, _clean)


def clean_rule(rule: dict[str, Json]) -> dict[str, Json]:
    """The same for an object that is not decoded."""
    given = rule.get("metadata") or {}
    metadata = {name: given[name] for name in ("name", "namespace", "uid") if given.get(name)}
    return {**rule, "metadata": metadata}


def clean_configuration(configuration: Json) -> dict[str, Json]:
    """What decisions about quota depend on in Kueue's Configuration."""
    return {name: configuration[name] for name in _OF_QUEUES if name in configuration}


def clean_claim_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    """What is requested, without what only drivers understand."""
    if not spec.devices.config:
        return spec
    devices = msgspec.structs.replace(spec.devices, config=_clean_configs(spec.devices.config))
    return msgspec.structs.replace(spec, devices=devices)


def _clean_metadata(metadata: ObjectMeta) -> ObjectMeta:
    annotations = {key: value for key, value in metadata.annotations.items() if _is_public(key)}
    if len(annotations) == len(metadata.annotations):
        return metadata
    return msgspec.structs.replace(metadata, annotations=annotations)


def _is_public(annotation: str) -> bool:
    domain = annotation.partition("/")[0]
    return annotation in STATING_GANGS or (
        annotation != _LAST_APPLIED
        and any(domain == public or domain.endswith(f".{public}") for public in _PUBLIC_DOMAINS)
    )


def _clean(value: Any) -> Any:
    metadata = _clean_metadata(value.metadata)
    if metadata is value.metadata:
        return value
    return msgspec.structs.replace(value, metadata=metadata)


def _clean_pod(pod: Pod) -> Pod:
    return msgspec.structs.replace(
        pod, metadata=_clean_metadata(pod.metadata), spec=_clean_spec(pod.spec)
    )


def _clean_spec(spec: PodSpec) -> PodSpec:
    return msgspec.structs.replace(
        spec,
        init_containers=tuple(map(_clean_container, spec.init_containers)),
        containers=tuple(map(_clean_container, spec.containers)),
    )


def _clean_container(container: Container) -> Container:
    return msgspec.structs.replace(container, command=(), args=())


def _clean_job(job: Job) -> Job:
    """The template of a job is not decoded, so what we have no field for would still be in it."""
    spec = msgspec.structs.replace(job.spec, template=_clean_pod_template(job.spec.template))
    return msgspec.structs.replace(job, metadata=_clean_metadata(job.metadata), spec=spec)


def _clean_queued(workload: QueuedWorkload) -> QueuedWorkload:
    """The templates of a Workload are not decoded either."""
    spec = dict(workload.spec) if isinstance(workload.spec, dict) else {}
    pod_sets = spec.get("podSets")
    if isinstance(pod_sets, list):
        spec["podSets"] = [_clean_pod_set(each) for each in pod_sets]
    metadata = _clean_metadata(workload.metadata)
    return msgspec.structs.replace(workload, metadata=metadata, spec=spec)


def _clean_pod_set(pod_set: Json) -> Json:
    """What cannot be understood is left out: there is no telling what is in it."""
    if not isinstance(pod_set, dict):
        return {}
    try:
        template = _clean_pod_template(pod_set.get("template") or {})
    except (DecodeError, AttributeError):
        template = {}
    return {**pod_set, "template": template}


def _clean_pod_template(template: Mapping[str, Json]) -> dict[str, Json]:
    pod = codec.convert(Pod, {"metadata": template.get("metadata"), "spec": template.get("spec")})
    cleaned = codec.to_dict(_clean_pod(pod))
    return {name: cleaned[name] for name in ("metadata", "spec") if cleaned.get(name)}


def _clean_configs(configs: tuple[_Config, ...]) -> tuple[_Config, ...]:
    return tuple(
        config
        if config.opaque is None or _is_ours(config.opaque)
        else msgspec.structs.replace(
            config, opaque=msgspec.structs.replace(config.opaque, parameters=None)
        )
        for config in configs
    )


def _is_ours(opaque: OpaqueDeviceConfiguration) -> bool:
    """Whether the data is not for a driver, but says where devices are to be."""
    if opaque.driver != DRIVER:
        return False
    try:
        ladder_of_parameters(opaque.parameters)
    except AlignmentError:
        return False
    return True


def _clean_class(device_class: DeviceClass) -> DeviceClass:
    spec = device_class.spec
    if spec.config:
        spec = msgspec.structs.replace(spec, config=_clean_configs(spec.config))
        device_class = msgspec.structs.replace(device_class, spec=spec)
    cleaned: DeviceClass = _clean(device_class)
    return cleaned


def _clean_template(template: ResourceClaimTemplate) -> ResourceClaimTemplate:
    inner = template.spec
    spec = msgspec.structs.replace(
        inner, metadata=_clean_metadata(inner.metadata), spec=clean_claim_spec(inner.spec)
    )
    metadata = _clean_metadata(template.metadata)
    return msgspec.structs.replace(template, metadata=metadata, spec=spec)


def _clean_claim(claim: ResourceClaim) -> ResourceClaim:
    return msgspec.structs.replace(
        claim,
        metadata=_clean_metadata(claim.metadata),
        spec=clean_claim_spec(claim.spec),
        status=_clean_status(claim.status),
    )


def _clean_status(status: ResourceClaimStatus) -> ResourceClaimStatus:
    allocation = status.allocation
    if allocation is not None and allocation.devices.config:
        configs = _clean_configs(allocation.devices.config)
        given = msgspec.structs.replace(allocation.devices, config=configs)
        allocation = msgspec.structs.replace(allocation, devices=given)
    devices = tuple(
        msgspec.structs.replace(device, data=None, network_data=None) for device in status.devices
    )
    return msgspec.structs.replace(status, allocation=allocation, devices=devices)


def _clean_replicated(workload: Any) -> Any:
    """Their pods are in the snapshot themselves, so templates add nothing about where pods go."""
    bare = msgspec.structs.replace(workload.spec, template={})
    if isinstance(workload, StatefulSet):
        bare = msgspec.structs.replace(bare, volume_claim_templates=())
    metadata = _clean_metadata(workload.metadata)
    return msgspec.structs.replace(workload, metadata=metadata, spec=bare)


_CLEANERS: Final[Mapping[type[ApiStruct], Callable[[Any], ApiStruct]]] = {
    Pod: _clean_pod,
    Job: _clean_job,
    QueuedWorkload: _clean_queued,
    DeviceClass: _clean_class,
    ResourceClaim: _clean_claim,
    ResourceClaimTemplate: _clean_template,
    Deployment: _clean_replicated,
    ReplicaSet: _clean_replicated,
    StatefulSet: _clean_replicated,
    DaemonSet: _clean_replicated,
}
