"""What a pod says of its probes and hooks: how a container is asked or told something besides its own command."""

from __future__ import annotations

from msgspec import field

from drayman.api.struct import ApiStruct, Int32, Int64


class ExecAction(ApiStruct):
    command: tuple[str, ...] = ()


class HttpHeader(ApiStruct):
    name: str = ""
    value: str = ""


class HttpGetAction(ApiStruct):
    host: str = ""
    """Empty for the address of the pod, as with the next."""
    port: int | str = 0
    path: str = "/"
    scheme: str = "HTTP"
    http_headers: tuple[HttpHeader, ...] = ()


class TcpSocketAction(ApiStruct):
    host: str = ""
    port: int | str = 0


class GrpcAction(ApiStruct):
    port: Int32 = 0
    service: str = ""


class SleepAction(ApiStruct):
    seconds: Int64 = 0


class Handler(ApiStruct):
    """One of these."""

    exec_: ExecAction | None = field(name="exec", default=None)
    http_get: HttpGetAction | None = None
    tcp_socket: TcpSocketAction | None = None
    grpc: GrpcAction | None = None
    """Of probes only."""
    sleep: SleepAction | None = None
    """Of hooks only."""


class Probe(Handler):
    initial_delay_seconds: Int32 = 0
    timeout_seconds: Int32 = 1
    period_seconds: Int32 = 10
    success_threshold: Int32 = 1
    failure_threshold: Int32 = 3
    termination_grace_period_seconds: Int64 | None = None


class Lifecycle(ApiStruct):
    post_start: Handler | None = None
    pre_stop: Handler | None = None
    stop_signal: str = ""
