"""The health protocol of gRPC: grpc.health.v1.Health/Check."""

from __future__ import annotations

from typing import Final

import grpc
import grpc.aio

from drayman.node.agent.handlers import GrpcAction
from drayman.node.agent.probes.answers import Answer, Asked, address
from drayman.node.agent.probes.asking_http import USER_AGENT
from drayman.node.agent.probes.container_health import Outcome
from drayman.plugins.protocol.grpc_health_pb2 import HealthCheckRequest, HealthCheckResponse

CHECK: Final = "/grpc.health.v1.Health/Check"
_OPTIONS: Final = (
    ("grpc.primary_user_agent", USER_AGENT),
    ("grpc.enable_http_proxy", 0),
    # Each probe connects by itself: shared connections wait longer and longer after a failure.
    ("grpc.use_local_subchannel_pool", 1),
)


async def ask_grpc(asked: Asked, action: GrpcAction) -> Answer:
    where = address(asked.pod_ip, action.port)
    async with grpc.aio.insecure_channel(where, options=_OPTIONS) as channel:
        check = channel.unary_unary(
            CHECK,
            request_serializer=HealthCheckRequest.SerializeToString,
            response_deserializer=HealthCheckResponse.FromString,
        )
        try:
            response = await check(HealthCheckRequest(service=action.service))
        except grpc.aio.AioRpcError as error:
            return Answer(Outcome.FAILURE, _refusal(where, error))
    if response.status == HealthCheckResponse.SERVING:
        return Answer(Outcome.SUCCESS)
    status = HealthCheckResponse.ServingStatus.Name(response.status)
    return Answer(Outcome.FAILURE, f'service unhealthy (responded with "{status}")')


def _refusal(where: str, error: grpc.aio.AioRpcError) -> str:
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return f"the server at {where} does not implement the grpc health protocol (grpc.health.v1.Health)"
    return f"health rpc to {where} failed: {error.code().name}: {error.details()}"
