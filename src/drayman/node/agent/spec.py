"""What a node reads of a pod to run it, in addition to what schedulers read."""

from __future__ import annotations

from typing import Any

from msgspec import field

from drayman.api.core import ContainerClaim
from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.struct import ApiStruct, Int32, Int64


class FieldRef(ApiStruct):
    field_path: str = ""


class ResourceFieldRef(ApiStruct):
    container_name: str = ""
    resource: str = ""
    divisor: Quantity | None = None


class KeyRef(ApiStruct):
    """A key of a ConfigMap or a Secret."""

    name: str = ""
    key: str = ""
    optional: bool = False


class EnvSource(ApiStruct):
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None


class EnvVar(ApiStruct):
    name: str = ""
    value: str = ""
    value_from: EnvSource | None = None


class WholeRef(ApiStruct):
    """A whole ConfigMap or Secret."""

    name: str = ""
    optional: bool = False


class EnvFrom(ApiStruct):
    prefix: str = ""
    config_map_ref: WholeRef | None = None
    secret_ref: WholeRef | None = None


class VolumeMount(ApiStruct):
    name: str = ""
    mount_path: str = ""
    sub_path: str = ""
    sub_path_expr: str = ""
    read_only: bool = False


class Resources(ApiStruct):
    limits: dict[str, Quantity] = field(default_factory=dict)
    requests: dict[str, Quantity] = field(default_factory=dict)
    claims: tuple[ContainerClaim, ...] = ()


class SecurityContext(ApiStruct):
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None


class ExecAction(ApiStruct):
    command: tuple[str, ...] = ()


class SleepAction(ApiStruct):
    seconds: Int64 = 0


class Handler(ApiStruct):
    """A hook, of the kinds that this node runs."""

    exec_: ExecAction | None = field(name="exec", default=None)
    sleep: SleepAction | None = None


class Lifecycle(ApiStruct):
    post_start: dict[str, Any] | None = None
    pre_stop: Handler | None = None


class Container(ApiStruct):
    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFrom, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    resources: Resources = Resources()
    restart_policy: str = ""
    security_context: SecurityContext | None = None
    lifecycle: Lifecycle | None = None
    liveness_probe: dict[str, Any] | None = None
    readiness_probe: dict[str, Any] | None = None
    startup_probe: dict[str, Any] | None = None

    @property
    def is_sidecar(self) -> bool:
        return self.restart_policy == "Always"

    @property
    def not_acted_on(self) -> tuple[str, ...]:
        """The fields that are set and that this node does nothing about."""
        fields = {
            "livenessProbe": self.liveness_probe,
            "readinessProbe": self.readiness_probe,
            "startupProbe": self.startup_probe,
            "lifecycle.postStart": None if self.lifecycle is None else self.lifecycle.post_start,
        }
        return tuple(name for name, value in fields.items() if value is not None)


class KeyToPath(ApiStruct):
    key: str = ""
    path: str = ""
    mode: Int32 | None = None


class ConfigMapSource(ApiStruct):
    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 | None = None
    optional: bool = False


class SecretSource(ApiStruct):
    secret_name: str = ""
    name: str = ""
    """Instead of `secret_name` where several sources are projected."""
    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 | None = None
    optional: bool = False


class DownwardFile(ApiStruct):
    path: str = ""
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    mode: Int32 | None = None


class DownwardSource(ApiStruct):
    items: tuple[DownwardFile, ...] = ()
    default_mode: Int32 | None = None


class TokenSource(ApiStruct):
    audience: str = ""
    expiration_seconds: Int64 = 3600
    path: str = ""


class Projection(ApiStruct):
    config_map: ConfigMapSource | None = None
    secret: SecretSource | None = None
    downward_api: DownwardSource | None = field(name="downwardAPI", default=None)
    service_account_token: TokenSource | None = None


class ProjectedSource(ApiStruct):
    sources: tuple[Projection, ...] = ()
    default_mode: Int32 | None = None


class EmptyDirSource(ApiStruct):
    medium: str = ""


class HostPathSource(ApiStruct):
    path: str = ""
    type_: str = field(name="type", default="")


class Volume(ApiStruct):
    name: str = ""
    empty_dir: EmptyDirSource | None = None
    host_path: HostPathSource | None = None
    config_map: ConfigMapSource | None = None
    secret: SecretSource | None = None
    projected: ProjectedSource | None = None
    downward_api: DownwardSource | None = field(name="downwardAPI", default=None)


class PodSecurity(ApiStruct):
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    fs_group: Int64 | None = None
    supplemental_groups: tuple[Int64, ...] = ()


class Spec(ApiStruct):
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    restart_policy: str = "Always"
    active_deadline_seconds: Int64 | None = None
    termination_grace_period_seconds: Int64 | None = None
    node_name: str = ""
    hostname: str = ""
    service_account_name: str = ""
    security_context: PodSecurity | None = None

    @property
    def all_containers(self) -> tuple[Container, ...]:
        return (*self.init_containers, *self.containers)


class RunnablePod(ApiStruct):
    """A pod as the one who runs it sees it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Spec = Spec()
