"""Random nodes with devices of their own and devices that every node can use."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hypothesis import strategies as st

from oracle.build import NODE, problem
from oracle.nodes import JsonObject
from oracle.selectors import DRIVERS
from oracle.strategies import holdings
from oracle.strategies_claims import claims
from oracle.strategies_hardware import NUMA, ROOT, pools

_SCOPES = ("nodeName", "allNodes", "nodeSelector")


@st.composite
def split_problems(draw: st.DrawFn) -> JsonObject:
    """Problems of which one driver's devices are the node's own and the other's can be used from every node.

    Mostly the claims want devices of one class, and mostly one of the two drivers says nothing about places.
    """
    own, placeless = draw(st.sampled_from(DRIVERS)), draw(st.sampled_from([*DRIVERS, None]))
    slices: list[JsonObject] = []
    for number, driver in enumerate(
        draw(st.permutations([*DRIVERS, draw(st.sampled_from(DRIVERS))]))
    ):
        for slice_ in json.loads(
            json.dumps(draw(pools(driver, f"p{number}", draw(st.integers(1, 3)))))
        ):
            _put_in_place(slice_["spec"], own, placeless)
            slices.append(slice_)
    asked = [json.loads(json.dumps(draw(claims(2)))) for _ in range(draw(st.integers(1, 2)))]
    only = draw(st.sampled_from(["gpu", "nic", None]))
    for wanted in _wanted(asked):
        wanted["deviceClassName"] = only or draw(st.sampled_from(["gpu", "nic", "any"]))
    return problem(slices, *asked, allocated=draw(holdings(slices)))


def _put_in_place(spec: JsonObject, own: str, placeless: str | None) -> None:
    if not spec.get("perDeviceNodeSelection"):
        for scope in _SCOPES:
            spec.pop(scope, None)
        spec |= {"nodeName": NODE} if spec["driver"] == own else {"allNodes": True}
    if spec["driver"] == placeless:
        for device in spec.get("devices") or []:
            for name in (ROOT, NUMA):
                device.get("attributes", {}).pop(name, None)


def _wanted(asked: list[JsonObject]) -> Iterator[JsonObject]:
    for claim in asked:
        for request in claim["spec"]["devices"]["requests"]:
            yield from [request["exactly"]] if "exactly" in request else request["firstAvailable"]
