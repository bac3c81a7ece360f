"""A scenario: what is done to a cluster, step by step, and what it looks like whenever it has come to rest."""

from __future__ import annotations

from msgspec import Struct, field

from conformance.records import JsonObject


class Expected(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The state at a checkpoint. A section that is None is not compared."""

    pods: JsonObject | None = None
    claims: JsonObject | None = None
    pod_groups: JsonObject | None = None
    events: list[JsonObject] | None = None
    counts: JsonObject | None = None
    mention: dict[str, list[str]] = field(default_factory=dict)
    """Words that have to be in the message of a pod that waits."""


class Right(Struct, frozen=True):
    """What a system without upstream's defect does: the parts of the state that are named."""

    partial: JsonObject


class Target(Struct, frozen=True):
    """The object that a step is about."""

    kind: str
    name: str
    namespace: str = "default"
    subresource: str = ""
    body: JsonObject = field(default_factory=dict)
    grace: int | None = None


class Kubelet(Struct, frozen=True):
    """What the kubelet of a pod's node reports, or that it has ended the pod."""

    pod: str
    namespace: str = "default"
    phase: str = ""
    remove: bool = False


class Step(Struct, frozen=True):
    """One thing that is done, or a checkpoint."""

    create: tuple[JsonObject, ...] = ()
    patch: Target | None = None
    delete: Target | None = None
    kubelet: Kubelet | None = None
    sleep: float = 0.0
    code: int | None = None
    """The HTTP status to expect where it is not the usual one."""
    settle: str = ""
    expect: Expected = field(default_factory=Expected)
    right: Right | None = None
    either: bool = False
    """Whether upstream's way is as good as the right one."""
    hold_s: float | None = None
    """For how long the state has to stay as it is, where that is not the usual time."""


class Namespace(Struct, frozen=True):
    name: str
    labels: dict[str, str] = field(default_factory=dict)


class Scenario(Struct, frozen=True):
    """A story with one or more checkpoints."""

    name: str
    tags: tuple[str, ...]
    steps: tuple[Step, ...]
    namespaces: tuple[Namespace, ...] = ()
    free_devices: bool = False
    """Whether the choice between devices that differ is free."""

    @property
    def group(self) -> str:
        return self.tags[0]
