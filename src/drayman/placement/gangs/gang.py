"""What a gang is, whichever way it was stated: how many members start together, how near to each other, and what becomes of them.

A gang is stated in one of several dialects (`dialects`), by an object that pods name or by annotations of the pods themselves. Past that
point nothing knows dialects: a gang is data. What cannot be read as a gang is a `Flaw`, which says what is wrong with which object. A pod
with a flawed membership waits. It is never taken for a pod that is on its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from msgspec import Struct, field

from drayman.api.quantity import Quantity


class Dialect(Enum):
    """How a gang is stated."""

    KUBERNETES = "kubernetes"
    """PodGroup of `scheduling.k8s.io`."""
    PLUGIN = "plugin"
    """PodGroup of `scheduling.x-k8s.io`: the coscheduling plugin."""
    KAI = "kai"
    """PodGroup of `scheduling.run.ai`, or annotations of the KAI Scheduler on a Job."""
    KUEUE = "kueue"
    """Labels and annotations of Kueue's pod groups."""
    DRAYMAN = "drayman"
    """Annotations of `drayman.dev`."""


class GangKey(NamedTuple):
    """What identifies a gang."""

    dialect: Dialect
    namespace: str
    name: str
    """Of its object. A gang without one is named by its pods, or is that of their owner: `job/train`."""
    uid: str = ""
    """Of the owner, for a gang of an owner's pods: another owner may have the same name later."""

    @property
    def has_object(self) -> bool:
        """Whether an object describes it, which may be missing."""
        return self.dialect in _WITH_OBJECTS and not self.uid

    @property
    def text(self) -> str:
        """All of it in one text, which is the same for no other gang."""
        return f"gang {self.dialect.value} {self.namespace}/{self.name} {self.uid}"

    def __str__(self) -> str:
        """As in `pod group ml/train`, or `gang ml/job/train`."""
        return f"{'pod group' if self.has_object else 'gang'} {self.namespace}/{self.name}"


_WITH_OBJECTS: Final = frozenset({Dialect.KUBERNETES, Dialect.PLUGIN, Dialect.KAI})


class Wish(Struct, frozen=True):
    """How near to each other pods are to be placed. A level is the name of a node label or of a device attribute."""

    required: str | None = None
    """All of them are in one domain of this level."""
    preferred: str | None = None
    """They are in one domain of this level if possible, or else of the next wider level, and so on."""
    among: tuple[str, ...] = ()
    """The levels that count, from wide to narrow, where a Topology object lists them. Otherwise those that are recognised."""

    def __bool__(self) -> bool:
        return self.required is not None or self.preferred is not None


NO_WISH: Final = Wish()


class Slices(Struct, frozen=True):
    """Members are split into slices of consecutive ranks, and each slice has a wish of its own."""

    size: int
    wish: Wish


class Subgroup(Struct, frozen=True):
    """A part of a gang with a quorum of its own. Pods belong to those that have no parts themselves."""

    name: str
    parent: str = ""
    """Empty: the gang itself."""
    least: int | None = None
    """How many of its pods start together, if that counts."""
    least_children: int | None = None
    """How many of the subgroups below it are complete; None: all of them."""
    wish: Wish = NO_WISH
    slices: tuple[Slices, ...] = ()
    """From the outermost to the innermost; each size is a multiple of the next."""


MOST_SUBGROUPS: Final = 256
"""How many parts a gang may have. Decisions take them apart again and again, so that more would keep everybody waiting."""
DEEPEST: Final = 16
"""How many parts may be one within the other."""


class Gang(Struct, frozen=True, kw_only=True):
    """Pods that start together."""

    key: GangKey
    least: int
    """How many members start together. With 0, each starts when it can; what the gang wishes holds all the same."""
    most: int | None = None
    """How many members there can be at all."""
    least_children: int | None = None
    """How many of the outermost subgroups have to be complete; None: all of them."""
    subgroups: tuple[Subgroup, ...] = ()
    """Parents before their children."""
    wish: Wish = NO_WISH
    slices: tuple[Slices, ...] = ()
    timeout_s: float | None = None
    """How long the gang may wait before it is reported as late."""
    least_resources: Mapping[str, Quantity] = field(default_factory=dict)
    """What the whole gang needs at least, by the word of its author."""
    priority: int | None = None
    """None: that of its members."""
    goes_as_one: bool = False
    """Whether a preempted member takes all others with it, those beyond the quorum too."""
    goes_singly: bool = False
    """Whether members are preempted one by one even if fewer than the quorum are left. By default those that are left go too."""
    grace_s: float | None = None
    """How long a gang that has started may have fewer than `least` members before it is ended; None: for ever."""
    preemption_delay_s: float = 0.0
    """How long it waits before others are preempted for it."""
    is_preemptible: bool | None = None
    """None: that depends on its priority."""
    since: float | None = None
    """When its object was created, in seconds since the epoch; None for a gang without one."""

    def subgroup(self, name: str) -> Subgroup | None:
        return next((each for each in self.subgroups if each.name == name), None)

    def children(self, name: str = "") -> tuple[Subgroup, ...]:
        """The subgroups directly below one of them, or below the gang itself."""
        return tuple(each for each in self.subgroups if each.parent == name)


class Membership(Struct, frozen=True):
    """Which gang a pod is in, and as what."""

    key: GangKey
    subgroup: str = ""
    rank: int | None = None
    """Its place in the order of members, if it has one."""


class FlawKind(Enum):
    MISSING = "missing"
    """The object of the gang does not exist."""
    INVALID = "invalid"
    """An object, or what pods say, does not make sense."""


class Flaw(Struct, frozen=True, cache_hash=True):
    """Why there is no gang although pods are in one."""

    key: GangKey
    kind: FlawKind
    object: str
    """What is at fault: `pod group ml/train`, `pod ml/train-0`."""
    message: str
    field: str = ""
    """Which of its fields; empty where the object itself is missing."""

    def __str__(self) -> str:
        where = f", {self.field}" if self.field else ""
        colon = ":" if self.kind is FlawKind.INVALID else ""
        return f"{self.object}{where}{colon} {self.message}"


def missing(key: GangKey) -> Flaw:
    """The object that pods name does not exist."""
    return Flaw(key, FlawKind.MISSING, str(key), "does not exist")


class InvalidGangError(Exception):
    """A field does not make sense. Raised and caught within the reading of one gang."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message
