"""An explanation as data. What is printed and what `-o json` gives are made from this alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.api.struct import ApiStruct
from drayman.explain.queue_answer import PlaceInQueue
from drayman.reasons.locality import DomainShort
from drayman.reasons.reason import Headline
from drayman.reasons.wording import and_list, counted

RUNS: Final = "runs"
PLACED: Final = "placed"
"""Of a member of a gang that has its node, but does not run there."""


class Step(ApiStruct):
    """What one test leaves. Nodes count while at least one device is left on them; at the last step, while enough are."""

    test: str
    """`node fit`, `class`, `selector`, `feature`, `free`, `taints`, `capacity`, `counters`, `constraint`, `count`; and `together`
    where every request finds enough but no node serves all of them."""
    nodes: int
    devices: int
    detail: str = ""
    """The selector, attribute or rule that distinguishes two steps of one test."""
    lost: Mapping[str, int] = {}
    """How many nodes or devices were lost to each cause, in words, where one test has several causes."""


class Funnel(ApiStruct):
    """The steps for one request, or one of its alternatives."""

    claim: str
    request: str
    wanted: int
    """How many devices; 0 for all that a node has."""
    steps: tuple[Step, ...]


class Holder(ApiStruct):
    """A holder of something that is needed: a claim or a pod, or all those of one workload."""

    devices: tuple[str, ...]
    namespace: str
    claim: str = ""
    """Empty where there are several claims, or none."""
    pods: tuple[str, ...] = ()
    workload: str = ""
    """The owner of these pods, as kind/name."""
    count: int = 1
    """How many claims, or pods without one, this stands for."""
    priority: int | None = None
    """The highest of them."""
    since: str = ""
    """The first of them."""
    visible: bool = True
    """False: the user may not see the holder."""
    lost: str = ""
    """What became of the claim while these pods use its devices: `deleted` or `deallocated`. Empty if it is as it should be."""


class Miss(ApiStruct):
    """The node that came closest, and what was missing there."""

    node: str
    sentence: str
    devices: tuple[str, ...] = ()
    """Devices that would do."""
    missing: int = 0
    """How many more are needed."""
    blocked: Mapping[str, str] = {}
    """Devices that nearly would do, and what is in the way of each."""


class Operation(ApiStruct):
    """One thing to do, exact enough for a program.

    `patch` is a JSON patch for an object (claims and templates cannot be changed: they have to be recreated with it), `delete` removes one,
    `wait` means to wait until an object has ended.
    """

    verb: str
    kind: str
    name: str
    namespace: str = ""
    patch: tuple[Mapping[str, object], ...] = ()


class Remedy(ApiStruct):
    """A change that makes it fit, as a search has confirmed."""

    sentence: str
    operations: tuple[Operation, ...]
    node: str = ""
    """Where the pod would go then."""
    devices: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """The same for a shell, where one line is enough."""


class DriverStep(ApiStruct):
    """What is to be done about a driver, which no search can try."""

    sentence: str
    command: str = ""


class Spelling(ApiStruct):
    """An attribute that no device has, and similar names."""

    claim: str
    request: str
    selector: str
    """Where it is written: an expression, or a constraint, which belongs to no single request."""
    attribute: str
    what: str = "attribute"
    """`attribute` or `capacity`."""
    similar: tuple[tuple[str, int], ...] = ()
    """Existing names, nearest first, each with the number of devices that have it."""


class Value(ApiStruct):
    """A value that a selector wants and no device has, and what devices have instead."""

    claim: str
    request: str
    selector: str
    condition: str
    """The part of the selector that it is in."""
    what: str
    """`attribute`, `capacity` or `driver`."""
    name: str
    """Of the attribute or capacity, with its domain."""
    wanted: str
    """How it is compared, and with what: `== "5g.50gb"`."""
    among: str
    """`matching`: the devices counted below pass everything else that class and request ask for. `all`: all devices are counted."""
    existing: tuple[tuple[str, int], ...] = ()
    """Existing values, nearest first, each with the number of devices that have it."""
    more: int = 0
    """How many more values there are."""


class Alternative(ApiStruct):
    """A node that was a candidate for something that runs, and what decided."""

    node: str
    chosen: bool = False
    refusal: str = ""
    preference: int | None = None
    price_per_hour: float | None = None
    """Of the node, if it has a price."""
    spot: bool = False
    """Whether the node may be taken back at any time."""
    quality: Mapping[str, int] = {}
    balance: int | None = None


class AlignmentChoice(ApiStruct):
    """A level that a stated alignment names."""

    level: str
    score: int
    nodes: int = 0
    """On how many suitable nodes it is the best that can be reached now."""


class StatedAlignment(ApiStruct):
    """Requests of a claim that are to be close together, and what they have reached or would reach."""

    claim: str
    requests: tuple[str, ...]
    wanted_by: str
    """`claim`, `pod` or `class NAME`."""
    level: str
    score: int
    """From 100 for the first of the levels to 0 for the last of a wish."""
    choices: tuple[AlignmentChoice, ...] = ()
    """The levels that were stated, the preferred one first."""


class DeviceCount(ApiStruct):
    """What the devices of one driver on a node are counted as."""

    driver: str
    total: int
    states: Mapping[str, int] = {}
    """As `drayman top devices` has them."""


class GangMember(ApiStruct):
    """A pod of a gang."""

    pod: str
    state: str
    """`runs`; `placed` if it has a node and does not run there; `done` if it has succeeded; `fits` or `no room` if places were looked
    for; else `waits`."""
    node: str = ""
    """Where it runs, or would."""
    subgroup: str = ""
    rank: int | None = None

    @property
    def has_node(self) -> bool:
        return self.state in (RUNS, PLACED)


class GangAnswer(ApiStruct, kw_only=True):
    """A gang: who is in it, how near they are to each other, and what domains hold of it."""

    name: str
    """`pod group ml/train`, `gang ml/job/train`."""
    needs: int
    """How many pods start together."""
    members: tuple[GangMember, ...] = ()
    """In the order of subgroups and ranks."""
    place: str = ""
    """The smallest domain that those with a node are in: rack r3. For a gang without room: the one in which the most fit."""
    spread: Mapping[str, int] = {}
    """How many domains of each finer level those with a node use, nodes last."""
    required: str = ""
    """The level, by label or attribute, of which one domain has to hold all of it."""
    preferred: str = ""
    wanted: tuple[int, ...] = ()
    """If no domain holds it: how many of each kind of pods, or how many slices, are wanted."""
    domains: tuple[DomainShort, ...] = ()
    """And what each domain holds of that, those with the most first."""
    even_empty: bool = False
    """Whether that is what they would hold with nothing in use."""

    @property
    def where(self) -> str:
        """How near to each other those with a node are: in rack r3, on 4 nodes."""
        if not self.spread:
            return ""
        if self.place.startswith("node ") and self.spread == {"node": 1}:
            return f" on {self.place}"
        spread = [counted(number, title) for title, number in self.spread.items()]
        return f" in {self.place}, on {and_list(spread)}"


class AwaitedEnd(ApiStruct):
    """A pod that is expected to end before something that waits can start."""

    pod: str
    namespace: str
    node: str
    ends: str
    basis: str
    """What that rests on: `declared`, `deadline`, `observed` or `being deleted`."""
    runs: int = 0
    """How many earlier runs it was observed in."""
    overdue: bool = False
    """Whether it should have ended before, so that this is only a guess."""


class AwaitedWorkload(ApiStruct):
    """A workload that is expected to end before something that waits for quota can start."""

    workload: str
    """As namespace/name."""
    ends: str
    basis: str
    """What that rests on: `declared`, `deadline`, `observed` or `being deleted`."""


class Estimate(ApiStruct, kw_only=True):
    """When something that waits will start, as far as that can be told."""

    sentence: str
    start: str = ""
    """Empty if there is no telling."""
    seconds: int = 0
    """How long that is from now."""
    rests_on: tuple[AwaitedEnd, ...] = ()
    """The pods that have to end first, the first of them at the beginning."""
    workloads: tuple[AwaitedWorkload, ...] = ()
    """For something that waits for quota: the workloads that have to end first, the last of them at the beginning."""
    more: int = 0
    """How many more of those there are."""
    unknown: int = 0
    """How many pods on nodes, or workloads with quota, there are of which it is not known how long they run."""


class Explanation(ApiStruct):
    """Everything about one object, or about a whole namespace or cluster."""

    kind: str
    name: str
    headline: Headline
    namespace: str = ""
    node: str = ""
    """Where it runs, or would."""
    devices: tuple[str, ...] = ()
    nodes: int = 0
    """How many the cluster has."""
    node_fit: tuple[Step, ...] = ()
    """The tests that nodes have to pass before devices are looked at."""
    funnels: tuple[Funnel, ...] = ()
    nearest: Miss | None = None
    gang: GangAnswer | None = None
    """The gang that the object is, or is in."""
    queue: PlaceInQueue | None = None
    """Where it waits for quota, or which quota it has, if it is in a queue."""
    estimate: Estimate | None = None
    """When it will start, if it waits for room and anything is known about run times."""
    holders: tuple[Holder, ...] = ()
    holders_left_out: int = 0
    """How many more there are."""
    refused_configs: tuple[str, ...] = ()
    """For a pod that does not run yet: what drivers will refuse when they prepare its devices."""
    refused_devices: tuple[str, ...] = ()
    """And which of its devices the node will refuse to give to its containers."""
    spelling: tuple[Spelling, ...] = ()
    values: tuple[Value, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    driver_steps: tuple[DriverStep, ...] = ()
    untried: str = ""
    """Set if not every remedy could be tried."""
    alternatives: tuple[Alternative, ...] = ()
    alignment: tuple[StatedAlignment, ...] = ()
    """What is stated about the places of its devices, and the level that is reached."""
    taints: tuple[str, ...] = ()
    """For a node: the taints that keep pods away, as kubectl writes them."""
    counts: tuple[DeviceCount, ...] = ()
    """For a node."""
    parts: tuple[Explanation, ...] = ()
    """The pods of a workload, one of each kind; what waits in a namespace; for a node, what waits and why not there."""
    count: int = 1
    """How many objects this stands for."""
    unseen: tuple[str, ...] = ()
    """What the user may not see, and this explanation therefore does not take into account."""
    evidence: Mapping[str, str] = {}
    """The versions of what was read."""

    @property
    def refusals(self) -> tuple[str, ...]:
        """What drivers and the node will refuse."""
        return (*self.refused_configs, *self.refused_devices)
