"""Random markets: trees of cohorts and queues with flavors, limits and policies of all kinds, and workloads that want something of them.

Everything is drawn as objects, so that whoever judges an outcome can read them without asking the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

from hypothesis import strategies as st

from quota.queues import Limits, Object, cohort, flavor, pods, queue, workload

RACK, HOST = "example.com/rack", "kubernetes.io/hostname"
TAINT = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
FLAVORS = ("f", "g", "h")
STRATEGIES = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")

amounts = st.integers(0, 4)
limit = st.none() | st.none() | st.integers(0, 3)
weights = st.sampled_from([None, None, 0, "0.5", 1, 3])


@dataclass(frozen=True)
class Market:
    """Objects in the order in which they are created, and workloads that come in two waves."""

    objects: list[Any]
    waves: tuple[list[Object], list[Object]]
    config: Any

    @property
    def queues(self) -> dict[str, Object]:
        found = (each[0] for each in self.objects if isinstance(each, list))
        return {each["metadata"]["name"]: each["spec"] for each in found}

    @property
    def cohorts(self) -> dict[str, Object]:
        found = (each for each in self.objects if isinstance(each, dict))
        return {
            each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == "Cohort"
        }

    @property
    def workloads(self) -> dict[str, Object]:
        return {each["metadata"]["name"]: each["spec"] for wave in self.waves for each in wave}


def topology() -> list[Object]:
    """Two racks of two nodes each, in flavor `h`."""
    levels = [{"nodeLabel": RACK}, {"nodeLabel": HOST}]
    nodes = [
        {
            "kind": "Node",
            "metadata": {
                "name": f"{rack}{n}",
                "labels": {"h": "h", RACK: rack, HOST: f"{rack}{n}"},
            },
            "status": {
                "allocatable": {"cpu": str(cpu), "memory": "20", "pods": "10"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for rack, n, cpu in (("a", 1, 2), ("a", 2, 3), ("b", 1, 2), ("b", 2, 4))
    ]
    made = {"kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": levels}}
    return [made, *nodes]


@st.composite
def quotas(draw: st.DrawFn, *, limited: bool) -> list[Object]:
    """Resource groups: cpu and memory in up to three flavors, perhaps pods in another one."""

    def one(name: str) -> Object:
        quota: Limits = (draw(amounts), None, None)
        if limited:
            quota = (quota[0], draw(limit), draw(limit))
        names = ("nominalQuota", "borrowingLimit", "lendingLimit")
        found = {n: str(q) for n, q in zip(names, quota, strict=True) if q is not None}
        return {"name": name, **found}

    def group(resources: tuple[str, ...], flavors: list[str]) -> Object:
        listed = [{"name": f, "resources": [one(r) for r in resources]} for f in flavors]
        return {"coveredResources": list(resources), "flavors": listed}

    resources = draw(st.sampled_from([("cpu",), ("cpu", "memory"), ("cpu", "memory")]))
    more = draw(st.sampled_from([(), (), *permutations(FLAVORS[1:]), FLAVORS[1:2], FLAVORS[2:]]))
    flavors = ["f", *more] if draw(st.booleans()) else [*more, "f"]
    found = [group(resources, flavors)]
    if draw(st.integers(0, 3)) == 0:
        found.append(group(("pods",), ["p"]))
    return found


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    reclaim = draw(st.sampled_from(["LowerPriority", "LowerPriority", "Never", "Any"]))
    stops = ["MayStopSearch", "TryNextFlavor"]
    fungibility = {
        "whenCanBorrow": draw(st.sampled_from(stops)),
        "whenCanPreempt": draw(st.sampled_from(stops)),
    }
    if set(fungibility.values()) == {"TryNextFlavor"} and draw(st.booleans()):
        fungibility["preference"] = "PreemptionOverBorrowing"
    within = st.sampled_from(["LowerPriority", "Never", "LowerOrNewerEqualPriority"])
    force = st.sampled_from([False, False, None, 0])
    return {
        "within": draw(within),
        "reclaim": reclaim,
        "force": False if reclaim == "Never" else draw(force),
        "weight": draw(weights),
        "queueingStrategy": draw(st.sampled_from(["StrictFIFO", "BestEffortFIFO"])),
        "flavorFungibility": fungibility,
    }


@st.composite
def demands(draw: st.DrawFn, name: str) -> Object:
    count = draw(st.sampled_from([1, 1, 2, 2, 3, 4, 0]))
    least = draw(st.none() | st.integers(1, count)) if count else None
    asked: dict[str, Any] = {"cpu": draw(st.sampled_from([1, 1, 2, "500m", 0]))}
    if draw(st.integers(0, 3)) == 0:
        asked["memory"] = draw(st.integers(0, 2))
    found = pods(name, count, least, **asked)
    if draw(st.integers(0, 5)) == 0:
        level = draw(st.sampled_from([RACK, HOST]))
        how = draw(st.sampled_from([{"required": level}, {"preferred": level}]))
        found["topologyRequest"] = how
    if draw(st.booleans()):
        found["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    return found


@st.composite
def markets(draw: st.DrawFn) -> Market:
    """Up to four cohorts on three levels, up to three queues, and up to a dozen workloads."""
    flavors = [
        flavor("g", nodeTaints=draw(st.sampled_from([[], [TAINT]]))),
        flavor("h", nodeLabels={"h": "h"}, topologyName="t"),
        flavor("p"),
    ]
    names, cohorts = ["root"], [cohort("root")]
    for number in range(draw(st.integers(0, 3))):
        made = cohort(f"c{number}", draw(st.sampled_from(names)), weight=draw(weights))
        if draw(st.booleans()):
            made["spec"]["resourceGroups"] = draw(quotas(limited=True))
        cohorts.append(made)
        names.append(f"c{number}")
    if draw(st.booleans()):
        cohorts[0]["spec"]["resourceGroups"] = draw(quotas(limited=False))
    queues = []
    for number in range(draw(st.integers(1, 3))):
        parent = draw(st.sampled_from([*names, *names, ""]))
        groups = draw(quotas(limited=bool(parent)))
        queues.append(queue(f"q{number}", cohort=parent, resourceGroups=groups, **draw(policies())))
    waves: tuple[list[Object], list[Object]] = ([], [])
    for number in range(draw(st.integers(3, 12))):
        where = f"q{draw(st.integers(0, len(queues) - 1))}"
        sets = [draw(demands(f"s{n}")) for n in range(draw(st.sampled_from([1, 1, 2])))]
        priority = draw(st.integers(-1, 2))
        made = workload(f"w{number}", where, *sets, priority=priority)
        waves[draw(st.integers(0, 1))].append(made)
    strategies = draw(st.sampled_from([None, STRATEGIES[:1], STRATEGIES[1:], STRATEGIES]))
    config = None if strategies is None else {"fairSharing": {"preemptionStrategies": strategies}}
    return Market([*flavors, *topology(), *cohorts, *queues], waves, config)
