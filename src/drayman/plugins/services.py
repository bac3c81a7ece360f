"""The services of the protocol: which messages their methods take and give, and how values become messages.

v1 and v1beta1 have the same methods and, but for the id of a share, the same messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from drayman.plugins.model import (
    Answers,
    ClaimRef,
    Failed,
    HealthState,
    Ready,
    ReadyDevice,
    Removals,
    ReportedHealth,
    cut_message,
    writable,
)
from drayman.plugins.protocol import dra_v1_pb2, dra_v1beta1_pb2, health_pb2, registration_pb2

PrepareRequest: TypeAlias = (
    dra_v1_pb2.NodePrepareResourcesRequest | dra_v1beta1_pb2.NodePrepareResourcesRequest
)
PrepareResponse: TypeAlias = (
    dra_v1_pb2.NodePrepareResourcesResponse | dra_v1beta1_pb2.NodePrepareResourcesResponse
)
UnprepareRequest: TypeAlias = (
    dra_v1_pb2.NodeUnprepareResourcesRequest | dra_v1beta1_pb2.NodeUnprepareResourcesRequest
)
UnprepareResponse: TypeAlias = (
    dra_v1_pb2.NodeUnprepareResourcesResponse | dra_v1beta1_pb2.NodeUnprepareResourcesResponse
)


@dataclass(frozen=True, slots=True)
class Method:
    """One method of a service."""

    service: str
    name: str
    request: type[Message]
    response: type[Message]
    streams: bool
    """Whether it answers with many messages."""

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"


Methods: TypeAlias = dict[str, Method]


def _methods(file: FileDescriptor, service: str) -> Methods:
    described = file.services_by_name[service]
    return {
        each.name: Method(
            described.full_name,
            each.name,
            GetMessageClass(each.input_type),
            GetMessageClass(each.output_type),
            each.server_streaming,
        )
        for each in described.methods
    }


REGISTRATION: Final = _methods(registration_pb2.DESCRIPTOR, "Registration")
HEALTH: Final = _methods(health_pb2.DESCRIPTOR, "DRAResourceHealth")
HEALTH_VERSION: Final = "v1alpha1.DRAResourceHealth"


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the service that prepares claims."""

    name: str
    """As plugins announce it."""
    messages: Any
    """The generated module."""
    methods: Methods
    has_shares: bool

    def prepare_request(self, claims: Sequence[ClaimRef]) -> PrepareRequest:
        request: PrepareRequest = self.messages.NodePrepareResourcesRequest(
            claims=self._claims(claims)
        )
        return request

    def unprepare_request(self, claims: Sequence[ClaimRef]) -> UnprepareRequest:
        request: UnprepareRequest = self.messages.NodeUnprepareResourcesRequest(
            claims=self._claims(claims)
        )
        return request

    def _claims(self, claims: Sequence[ClaimRef]) -> list[Any]:
        return [self.messages.Claim(namespace=c.namespace, name=c.name, uid=c.uid) for c in claims]

    def prepare_response(self, answers: Answers) -> PrepareResponse:
        response: PrepareResponse = self.messages.NodePrepareResourcesResponse()
        for uid, answer in answers.items():
            entry = response.claims[uid]  # reading an entry adds it, also where it stays empty
            if isinstance(answer, Failed):
                entry.error = writable(answer.message)
                continue
            for device in answer.devices:
                added: Any = entry.devices.add(
                    request_names=device.requests,
                    pool_name=device.pool,
                    device_name=device.device,
                    cdi_device_ids=device.cdi_ids,
                )
                if self.has_shares and device.share_id is not None:
                    added.share_id = device.share_id
        return response

    def unprepare_response(self, removals: Removals) -> UnprepareResponse:
        response: UnprepareResponse = self.messages.NodeUnprepareResourcesResponse()
        for uid, failed in removals.items():
            response.claims[uid].error = "" if failed is None else writable(failed.message)
        return response

    def answers(self, response: PrepareResponse) -> dict[str, Ready | Failed]:
        return {
            uid: Failed(entry.error)
            if entry.error
            else Ready(tuple(self._device(device) for device in entry.devices))
            for uid, entry in response.claims.items()
        }

    def _device(self, device: Any) -> ReadyDevice:
        has_share = self.has_shares and device.HasField("share_id")
        return ReadyDevice(
            tuple(device.request_names),
            device.pool_name,
            device.device_name,
            tuple(device.cdi_device_ids),
            device.share_id if has_share else None,
        )


V1: Final = Version("v1.DRAPlugin", dra_v1_pb2, _methods(dra_v1_pb2.DESCRIPTOR, "DRAPlugin"), True)
V1BETA1: Final = Version(
    "v1beta1.DRAPlugin",
    dra_v1beta1_pb2,
    _methods(dra_v1beta1_pb2.DESCRIPTOR, "DRAPlugin"),
    False,
)
VERSIONS: Final = (V1, V1BETA1)
"""The preferred one first."""


def claims_of(request: PrepareRequest | UnprepareRequest) -> tuple[ClaimRef, ...]:
    """The claims that a request is about."""
    return tuple(ClaimRef(each.namespace, each.name, each.uid) for each in request.claims)


def removals_of(response: UnprepareResponse) -> dict[str, Failed | None]:
    """What became of the claims of a request."""
    return {
        uid: Failed(entry.error) if entry.error else None for uid, entry in response.claims.items()
    }


def health_response(reports: Sequence[ReportedHealth]) -> health_pb2.NodeWatchResourcesResponse:
    """A complete list of reports as a message. What is longer than a node keeps is cut here, where the end can be marked."""
    return health_pb2.NodeWatchResourcesResponse(
        devices=[
            health_pb2.DeviceHealth(
                device=health_pb2.DeviceIdentifier(
                    pool_name=report.pool, device_name=writable(report.device)
                ),
                health=health_pb2.HealthStatus.Name(int(report.state)),
                last_updated_time=report.updated,
                health_check_timeout_seconds=report.timeout_s,
                message=cut_message(writable(report.message)),
            )
            for report in reports
        ]
    )


def _state_of(number: int) -> HealthState:
    """A number that this version does not know says nothing."""
    try:
        return HealthState(number)
    except ValueError:
        return HealthState.UNKNOWN


def reports_of(response: health_pb2.NodeWatchResourcesResponse) -> tuple[ReportedHealth, ...]:
    """The reports in a message."""
    return tuple(
        ReportedHealth(
            each.device.pool_name,
            each.device.device_name,
            _state_of(each.health),
            each.last_updated_time,
            each.health_check_timeout_seconds,
            each.message,
        )
        for each in response.devices
    )
