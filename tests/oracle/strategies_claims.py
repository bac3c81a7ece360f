"""Random claims: every kind of request, constraint and configuration."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from oracle import selectors
from oracle.build import claim, everything, exactly, first_available, opaque, toleration
from oracle.nodes import JsonObject
from oracle.selectors import GPU, NIC
from oracle.strategies_hardware import NUMA, ROOT, TAGS, rarely

_TOLERATIONS = [
    toleration("health"),
    toleration("health", operator="Equal", value="bad", effect="NoSchedule"),
    toleration("lease", effect="NoExecute"),
    toleration(),
]
_SELECTORS = [
    selectors.MODEL_A_GUARDED,
    selectors.MODEL_A_GUARDED,
    selectors.SHAREABLE,
    selectors.NOTHING,
    selectors.MODEL_A,
]
_ATTRIBUTES = [ROOT, ROOT, NUMA, TAGS, f"{GPU}/model", f"{NIC}/model"]


@st.composite
def requests(draw: st.DrawFn, name: str, *, sub: bool = False) -> JsonObject:
    """A request that is not a list: exact count or all."""
    fields: dict[str, Any] = {"cls": draw(st.sampled_from(["gpu", "nic", "any", "gpu", "tuned"]))}
    if draw(rarely(4)):
        fields["select"] = [draw(st.sampled_from(_SELECTORS))]
    if draw(rarely(60)):
        fields["select"] = [selectors.BROKEN]
    if draw(rarely(5)):
        fields["tolerates"] = [draw(st.sampled_from(_TOLERATIONS))]
    if draw(rarely(4)):
        fields["asks"] = {"memory": draw(st.integers(1, 5))}
    if not sub and draw(rarely(7)):
        fields["admin"] = True
    if draw(rarely(80)):
        fields["cls"] = "unknown"
    if draw(rarely(5)):
        return everything(name, **fields)
    return exactly(name, draw(st.sampled_from([1, 1, 1, 2, 2, 3])), **fields)


@st.composite
def listed(draw: st.DrawFn, name: str) -> JsonObject:
    """A request with alternatives."""
    number = draw(st.integers(1, 3))
    return first_available(name, *(draw(requests(f"s{n}", sub=True)) for n in range(number)))


@st.composite
def claims(draw: st.DrawFn, most: int) -> JsonObject:
    """A claim with up to `most` requests."""
    made = []
    names = []
    for n in range(draw(st.integers(1, most))):
        request = draw(listed(f"r{n}") if draw(rarely(4)) else requests(f"r{n}"))
        made.append(request)
        names += [f"r{n}", *(f"r{n}/{sub['name']}" for sub in request.get("firstAvailable", []))]
    constraints: dict[str, Any] = {
        kind: draw(st.lists(_constraint(names), max_size=1)) if draw(rarely(3)) else []
        for kind in ("match", "distinct")
    }
    config = draw(st.lists(_config(names), min_size=1, max_size=2)) if draw(rarely(6)) else None
    return claim(*made, config=config, **constraints)


def _constraint(names: list[str]) -> st.SearchStrategy[Any]:
    attribute = st.sampled_from(_ATTRIBUTES)
    some = st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)
    return st.one_of(attribute, st.tuples(attribute, some))


def _config(names: list[str]) -> st.SearchStrategy[JsonObject]:
    some = st.lists(st.sampled_from(names), max_size=3, unique=True)
    return some.map(lambda r: {**({"requests": r} if r else {}), **opaque(GPU, "claim")})
