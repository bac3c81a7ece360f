"""How a scenario is written down, and how it is checked.

A scenario says all that is to be told: what it does not mention must not be there. So a scenario without `holders` checks that nobody is
named, and one without `remedies` that nothing is promised. Device names stand for themselves (`gpu-3`); driver and pool are left out.

Funnels and tests of nodes are written as they are read: `class 2/16, free 1/3, count 0/3` are the nodes and devices left by each test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from drayman.explain.answer import Explanation, Holder, Miss, Remedy, Spelling, Step, Value
from drayman.explain.claim import explain_claim
from drayman.explain.pod import explain_pod
from drayman.explain.workload import explain_job
from drayman.placement.decision.deciding import Decider
from drayman.placement.placing import Found
from drayman.placement.world import World
from drayman.reasons.reason import Reason
from explain.applying import apply
from explain.scenarios.scene import Scene

_MOST_NAMED = 16


@dataclass(frozen=True, slots=True)
class Near:
    """The nearest miss. `says` are words of its sentence, `blocked` is {devices: words of what is in their way}."""

    node: str
    says: str
    devices: str = ""
    missing: int = 0
    blocked: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A cluster in which something waits, and what is to be told about it."""

    name: str
    """The story in one line."""
    scene: Callable[[], Scene]
    reason: Reason
    says: str | tuple[str, ...]
    """Words that the sentence of the headline has to have."""
    about: str = "pod"
    """Which object: `pod` is the last one of the scene, `claim/NAME` and `job/NAME` are others."""
    fit: str = ""
    """Nodes left by the tests of nodes that leave some out: `cordon 2, resources 1`."""
    funnels: Mapping[str, str] = field(default_factory=dict)
    """By request; where several claims have one of the same name, by `claim/request`."""
    nearest: Near | None = None
    holders: tuple[str, ...] = ()
    """As `_holder` writes them: `team-a/trainer priority 5: gpu-0 gpu-1`."""
    spelling: tuple[str, ...] = ()
    """As `_spelling` writes them: `memroy: memory 8`."""
    values: tuple[str, ...] = ()
    """As `value_of` writes them: `model == "A100": H100 8`."""
    remedies: tuple[str, ...] = ()
    """Their sentences, best first."""
    untried: str = ""
    plays: bool = True
    """False where a server does not let such objects in, or its controllers help at once."""


def named(scenario: Scenario) -> str:
    """For pytest."""
    return scenario.name.replace(" ", "-")


def check(scenario: Scenario) -> None:
    """What is told is what the scenario says, and each remedy does what it promises."""
    world = scenario.scene().world()
    found = explain(world, scenario.about)
    head = found.headline
    assert head.reason is scenario.reason, str(head)
    assert head.kind == (scenario.reason.kind.value if scenario.reason.kind else "")
    for words in (scenario.says,) if isinstance(scenario.says, str) else scenario.says:
        assert words in head.sentence
    assert steps_of(found.node_fit, devices=False) == scenario.fit
    assert funnels_of(found) == scenario.funnels
    _check_nearest(found.nearest, scenario.nearest)
    assert tuple(map(holder_of, found.holders)) == scenario.holders
    assert tuple(map(spelling_of, found.spelling)) == scenario.spelling
    assert tuple(map(value_of, found.values)) == scenario.values
    assert tuple(r.sentence for r in found.remedies) == scenario.remedies
    assert found.untried == scenario.untried
    for remedy in found.remedies:
        helps(world, scenario.about, remedy)


def explain(world: World, about: str) -> Explanation:
    """All that is said about the subject of a scenario."""
    kind, _, name = about.partition("/")
    match kind:
        case "claim":
            claim = world.claim("default", name)
            assert claim is not None, f"there is no claim {name}"
            return explain_claim(world, claim)
        case "job":
            (job,) = (job for job in world.objects.jobs if job.metadata.name == name)
            return explain_job(world, job)
        case _:
            return explain_pod(world, world.objects.pods[-1])


def helps(world: World, about: str, remedy: Remedy) -> None:
    """Once the remedy is applied, the subject fits, on the node that the remedy names."""
    after = world.with_objects(apply(world.objects, remedy))
    if about.startswith("job/"):
        (job,) = (job for job in after.objects.jobs if f"job/{job.metadata.name}" == about)
        assert not job.spec.suspend
        return
    waited = world.objects.pods[-1]
    pod = after.pod(waited.metadata.namespace, waited.metadata.name)
    if pod is None:  # another is made in its place
        assert waited.spec.node_name, f"the pod itself is gone: {remedy.sentence}"
        pod = replace(waited, spec=replace(waited.spec, node_name=""))
    assert not pod.spec.scheduling_gates
    if after.state.gangs.gang_of(pod) is not None:
        found = explain_pod(after, pod, with_remedies=False)
        assert found.headline.reason is Reason.FITS, f"does not help: {remedy.sentence}"
        return
    round_ = Decider(after.state).round(after.now)
    demand = round_.demand(pod)
    assert isinstance(round_.find(demand), Found), f"does not help: {remedy.sentence}"
    if remedy.node:
        node = after.state.nodes[remedy.node]
        assert round_.placer(demand).found_on(demand, node) is not None, (
            f"not there: {remedy.sentence}"
        )


def steps_of(steps: Iterable[Step], *, devices: bool = True) -> str:
    """The funnel on one line."""
    return ", ".join(
        f"{step.test} {step.nodes}/{step.devices}" if devices else f"{step.test} {step.nodes}"
        for step in steps
    )


def funnels_of(found: Explanation) -> dict[str, str]:
    """The funnels by request."""
    names = [funnel.request for funnel in found.funnels]
    return {
        f.request if names.count(f.request) == 1 else f"{f.claim}/{f.request}": steps_of(f.steps)
        for f in found.funnels
    }


def holder_of(holder: Holder) -> str:
    """A holder on one line: pods or else the claim, the workload, the priority where there is one, and the devices."""
    if not holder.visible:
        return f"somebody: {_short(holder.devices)}"
    who = f"{holder.namespace}/{','.join(holder.pods) or holder.claim}"
    whose = f" of {holder.workload}" if holder.workload else ""
    priority = f" priority {holder.priority}" if holder.priority else ""
    has = f": {_short(holder.devices)}" if holder.devices else ""
    return f"{who}{whose}{priority}{has}"


def spelling_of(spelling: Spelling) -> str:
    """A name that does not exist, and those that do."""
    similar = ", ".join(f"{name} {number}" for name, number in spelling.similar)
    return f"{spelling.attribute}: {similar}"


def value_of(value: Value) -> str:
    """A value that no device has, and those that devices have."""
    existing = ", ".join(f"{text} {number}" for text, number in value.existing)
    return f"{value.name.rpartition('/')[2] or value.what} {value.wanted}: {existing}"


def _check_nearest(found: Miss | None, wanted: Near | None) -> None:
    if found is None or wanted is None:
        assert (found, wanted) == (None, None)
        return
    assert (found.node, found.missing) == (wanted.node, wanted.missing), found
    assert wanted.says in found.sentence
    assert _short(found.devices) == wanted.devices
    blocked = {_short((device,)): words for device, words in found.blocked.items()}
    reasons = {each: words for group, words in wanted.blocked.items() for each in group.split()}
    assert blocked.keys() == reasons.keys()
    for device, words in reasons.items():
        assert words in blocked[device]


def _short(devices: Iterable[str]) -> str:
    """Device names, or how many there are if they are many."""
    names = [device.rpartition("/")[2] for device in devices]
    return " ".join(names) if len(names) <= _MOST_NAMED else f"{len(names)} devices"
