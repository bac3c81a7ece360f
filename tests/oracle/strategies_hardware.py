"""Random hardware: pools of a few devices in every form in which a pool can be published."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from oracle.build import NODE, capacity, device, label_selector, piece, taint
from oracle.nodes import JsonObject
from oracle.selectors import DRIVERS

ROOT = "resource.kubernetes.io/pcieRoot"
NUMA = "resource.kubernetes.io/numaNode"
TAGS = "example.com/tags"

_SCOPES: list[JsonObject] = [
    {"nodeName": NODE},
    {"nodeName": NODE},
    {"allNodes": True},
    {"nodeSelector": label_selector("zone", "a")},
    {"nodeSelector": label_selector("tier", "2", operator="Gt")},
    {"nodeSelector": label_selector("zone", "b")},
    {"nodeName": "node-2"},
]
_DEVICE_SCOPES = [_SCOPES[0], _SCOPES[2], _SCOPES[3], _SCOPES[6]]
_POLICIES: list[JsonObject] = [
    {},
    {"default": "2"},
    {"default": "2", "validRange": {"min": "2"}},
    {"default": "2", "validRange": {"min": "1", "max": "5", "step": "2"}},
    {"default": "1", "validValues": ["1", "3", "4"]},
]
_TAINTS = [
    taint("health", "bad", "NoSchedule"),
    taint("health", "bad", "NoExecute"),
    taint("health", "slow", "None"),
    taint("lease", "", "NoSchedule"),
]


def rarely(chance: int = 8) -> st.SearchStrategy[bool]:
    """True once in `chance` times; shrinks to False."""
    return st.integers(0, chance - 1).map(lambda n: n == chance - 1)


@st.composite
def attributes(draw: st.DrawFn) -> JsonObject:
    """Attributes from small alphabets, so that devices often agree and often lack one."""
    found: JsonObject = {}
    if draw(st.integers(0, 3)):
        found[ROOT] = {"string": draw(st.sampled_from(["r0", "r1", "r2"]))}
    if draw(st.integers(0, 3)):
        found[NUMA] = {"int": draw(st.integers(0, 1))}
    if draw(st.integers(0, 3)):
        found["model"] = {"string": draw(st.sampled_from(["a", "b"]))}
    if draw(st.booleans()):
        found[TAGS] = draw(_tags())
    return found


def _tags() -> st.SearchStrategy[JsonObject]:
    words = st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, max_size=2, unique=True)
    numbers = st.lists(st.integers(0, 1), min_size=1, max_size=2, unique=True)
    return st.one_of(
        words.map(lambda v: {"strings": v}),
        st.sampled_from(["x", "y"]).map(lambda v: {"string": v}),
        numbers.map(lambda v: {"ints": v}),
    )


@st.composite
def devices(draw: st.DrawFn, name: str, *, counters: bool, per_device: bool) -> JsonObject:
    """One device with a mix of features."""
    fields: dict[str, Any] = {"attrs": draw(attributes())}
    if draw(rarely(3)):
        policy = draw(st.sampled_from(_POLICIES))
        fields["capacity"] = {"memory": capacity(draw(st.sampled_from([4, 6])), **policy)}
        if draw(rarely(4)):
            fields["capacity"]["links"] = capacity(2, default="1")
    if draw(rarely(3)):
        fields["allowMultipleAllocations"] = True
    if counters and draw(st.integers(0, 3)):
        set_name = draw(st.sampled_from(["set-0", "set-0", "set-1"]))
        fields["spends"] = {set_name: {"units": draw(st.integers(1, 3))}}
        if draw(rarely(4)):
            fields["spends"][set_name]["memory"] = 2
    if draw(rarely(5)):
        fields["taints"] = draw(st.lists(st.sampled_from(_TAINTS), min_size=1, max_size=2))
    if draw(rarely(8)):
        fields["bindingConditions"] = ["ready"]
        fields["bindingFailureConditions"] = ["failed"]
    if draw(rarely(8)):
        fields["bindsToNode"] = True
    if per_device:
        fields |= draw(st.sampled_from(_DEVICE_SCOPES))
    return device(name, **fields)


@st.composite
def pools(draw: st.DrawFn, driver: str, name: str, size: int) -> list[JsonObject]:
    """The slices of one pool."""
    counters = draw(rarely(3))
    per_device = draw(rarely(6))
    scope = {"perDeviceNodeSelection": True} if per_device else draw(st.sampled_from(_SCOPES))
    made = [draw(devices(f"d{n}", counters=counters, per_device=per_device)) for n in range(size)]
    if made and draw(rarely(25)):
        made.append({**made[0]})  # The same name twice makes the pool invalid.
    cut = draw(st.integers(0, len(made)))
    parts = [part for part in (made[:cut], made[cut:]) if part] or [[]]
    total = len(parts) + counters + draw(rarely(15))
    common: dict[str, Any] = {"driver": driver, "pool": name, "of": total, "generation": 2}
    order = draw(st.permutations(["k", "m"]))
    slices = [
        piece(part, name=f"{name}-{order[n]}", **common, **scope) for n, part in enumerate(parts)
    ]
    if counters:
        unknown = draw(rarely(25))
        sets = {"set-0": {"units": draw(st.integers(2, 5)), "memory": 4}}
        if not unknown:
            sets["set-1"] = {"units": draw(st.integers(1, 4)), "memory": 2}
        slices.append(piece(counters=sets, name=f"{name}-counters", **common, **scope))
    if draw(rarely(10)):
        slices.append(draw(_other_generation(driver, name)))
    return slices


def _other_generation(driver: str, pool: str) -> st.SearchStrategy[JsonObject]:
    """A slice of an older or newer generation, here or elsewhere."""
    return st.builds(
        lambda generation, where: piece(
            ["d0", "stale"],
            driver=driver,
            pool=pool,
            name=f"{pool}-other",
            generation=generation,
            nodeName=where,
        ),
        st.sampled_from([1, 1, 3]),
        st.sampled_from([NODE, "node-2"]),
    )


@st.composite
def hardware(draw: st.DrawFn, most: int = 7) -> list[JsonObject]:
    """The slices of a cluster, at most `most` devices, in any order."""
    slices: list[JsonObject] = []
    left = draw(st.integers(1, most))
    names = draw(st.permutations(["p0", "p1", "p2", "p3"]))
    for name in names:
        if left == 0:
            break
        size = draw(st.integers(1, left))
        slices += draw(pools(draw(st.sampled_from(DRIVERS)), name, size))
        left -= size
    return draw(st.permutations(slices))
