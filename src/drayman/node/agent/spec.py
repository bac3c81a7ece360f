"""What a node reads of a pod to run it, in addition to what schedulers read."""

from __future__ import annotations

import signal
from collections.abc import Collection
from typing import Final

from msgspec import field

from drayman.api.core import ContainerClaim
from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.signals import SIGNALS
from drayman.api.struct import ApiStruct, Int32, Int64
from drayman.node.agent.handlers import Handler, Lifecycle, Probe

NO_EPHEMERAL: Final = "this node runs no ephemeral containers"


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


class Capabilities(ApiStruct):
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class Profile(ApiStruct):
    """Of seccomp or AppArmor."""

    type_: str = field(name="type", default="")


class Security(ApiStruct):
    """What a pod says for all of its containers, and a container for itself, which counts more."""

    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    seccomp_profile: Profile | None = None
    app_armor_profile: Profile | None = None
    se_linux_options: dict[str, str] | None = None


class SecurityContext(Security):
    """That of a container."""

    read_only_root_filesystem: bool = False
    allow_privilege_escalation: bool | None = None
    privileged: bool = False
    capabilities: Capabilities | None = None
    proc_mount: str = ""


class ContainerPort(ApiStruct):
    name: str = ""
    container_port: Int32 = 0


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
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    ports: tuple[ContainerPort, ...] = ()
    termination_message_path: str = ""
    termination_message_policy: str = ""

    @property
    def post_start(self) -> Handler | None:
        return None if self.lifecycle is None else self.lifecycle.post_start

    @property
    def pre_stop(self) -> Handler | None:
        return None if self.lifecycle is None else self.lifecycle.pre_stop

    @property
    def stop_signal(self) -> int:
        """What tells it to end."""
        said = "" if self.lifecycle is None else self.lifecycle.stop_signal
        return SIGNALS.get(said, signal.SIGTERM)

    @property
    def is_sidecar(self) -> bool:
        return self.restart_policy == "Always"


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
    size_limit: Quantity | None = None


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

    @property
    def has_files(self) -> bool:
        """Whether the node fills it with files, which may change."""
        sources = (self.config_map, self.secret, self.projected, self.downward_api)
        return any(each is not None for each in sources)


class PodSecurity(Security):
    fs_group: Int64 | None = None
    supplemental_groups: tuple[Int64, ...] = ()
    sysctls: tuple[dict[str, str], ...] = ()


class ReadinessGate(ApiStruct):
    condition_type: str = ""


class EphemeralContainer(ApiStruct):
    """One that is not run: nothing else of it is read."""

    name: str = ""
    image: str = ""


class Spec(ApiStruct):
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[EphemeralContainer, ...] = ()
    """Nothing runs them here."""
    volumes: tuple[Volume, ...] = ()
    restart_policy: str = "Always"
    active_deadline_seconds: Int64 | None = None
    termination_grace_period_seconds: Int64 | None = None
    node_name: str = ""
    hostname: str = ""
    service_account_name: str = ""
    security_context: PodSecurity | None = None
    host_users: bool | None = None
    readiness_gates: tuple[ReadinessGate, ...] = ()

    @property
    def all_containers(self) -> tuple[Container, ...]:
        return (*self.init_containers, *self.containers)


class ReportedContainer(ApiStruct):
    name: str = ""
    container_id: str = field(name="containerID", default="")
    started: bool = False
    ready: bool = False


class ReportedStatus(ApiStruct):
    container_statuses: tuple[ReportedContainer, ...] = ()
    init_container_statuses: tuple[ReportedContainer, ...] = ()

    def container(self, container_id: str) -> ReportedContainer | None:
        every = (*self.container_statuses, *self.init_container_statuses)
        return next((each for each in every if each.container_id == container_id), None)


class RunnablePod(ApiStruct):
    """A pod as the one who runs it sees it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Spec = Spec()
    status: ReportedStatus = ReportedStatus()
    """What was last reported of it, maybe by an agent before this one."""


def security_of(pod: RunnablePod, container: Container) -> Security:
    """What counts for a container of what it and its pod say."""
    own, of_pod = container.security_context, pod.spec.security_context
    found = {}
    for name in Security.__struct_fields__:
        said = (getattr(each, name) for each in (own, of_pod) if each is not None)
        found[name] = next((value for value in said if value is not None), None)
    return Security(**found)


_UNCONFINED: Final = ("", "Unconfined")


def ignored_changes(before: Spec, after: Spec, running: Collection[str]) -> list[str]:
    """What was changed of a pod and is not acted on, in words. `running`: the containers that run."""
    known = {each.name for each in before.ephemeral_containers}
    found = [
        f"ephemeral container {each.name}: {NO_EPHEMERAL}"
        for each in after.ephemeral_containers
        if each.name not in known
    ]
    images = {each.name: each.image for each in before.all_containers}
    found.extend(
        f"container {each.name}: it runs on, and has image {each.image} when it is next started"
        for each in after.all_containers
        if each.name in running and images.get(each.name, each.image) != each.image
    )
    return found


def ignored_fields(pod: RunnablePod, container: Container) -> tuple[str, ...]:
    """What a container or its pod says for the sake of security and a node of processes does not do.

    That a container sees the processes and the network of its host is not among them: a pod that wants none of it cannot be told from one
    that has said nothing.
    """
    counts = security_of(pod, container)
    own = container.security_context or SecurityContext()
    of_pod = pod.spec.security_context or PodSecurity()
    capabilities = own.capabilities or Capabilities()
    ignored = {
        "capabilities": bool(capabilities.add or capabilities.drop),
        "seccompProfile": _is_confined(counts.seccomp_profile),
        "appArmorProfile": _is_confined(counts.app_armor_profile),
        "seLinuxOptions": bool(counts.se_linux_options),
        "procMount": own.proc_mount == "Default",  # otherwise nothing of it is hidden, as here
        "sysctls": bool(of_pod.sysctls),
        "hostUsers": pod.spec.host_users is False,
    }
    return tuple(name for name, is_ignored in ignored.items() if is_ignored)


def _is_confined(profile: Profile | None) -> bool:
    return profile is not None and profile.type_ not in _UNCONFINED
