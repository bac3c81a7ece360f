"""What an allocation says besides the devices: shares, copied fields, configuration, node selector."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.allocator import Policy
from oracle.build import (
    GPU,
    NIC,
    NODE,
    capacity,
    claim,
    device,
    device_class,
    exactly,
    first_available,
    label_selector,
    opaque,
    piece,
    problem,
    shared,
    toleration,
)
from oracle.nodes import JsonObject
from oracle.quantities import amount
from oracle.selectors import ONLY_GPU
from oracle.subject import BEST, FIRST_FIT, answer
from oracle.validity import violations

HERE = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}
    ]
}
ZONE = label_selector("zone", "a")
TUNED = device_class("tuned", ONLY_GPU, config=[opaque(GPU, "one"), opaque(GPU, "two")])


def results_of(case: JsonObject) -> list[JsonObject]:
    """The results of first fit, after both policies passed the rules."""
    for policy in (BEST, FIRST_FIT):
        line = answer(case, policy)
        assert line["outcome"] == "allocated"
        assert violations(case, line["results"]) == []
    return list(line["results"])


def entries_of(case: JsonObject) -> list[JsonObject]:
    return [entry for result in results_of(case) for entry in result["devices"]["results"]]


def test_an_entry_names_request_and_device_and_nothing_else() -> None:
    """A plain device has no share, capacity, tolerations or conditions in its entry."""
    case = problem([piece([device("g0", capacity={"memory": capacity(4)})])], claim(exactly()))
    assert entries_of(case) == [{"request": "req", "driver": GPU, "pool": NODE, "device": "g0"}]


def test_admin_access_is_marked() -> None:
    """Only entries of requests with admin access carry the mark."""
    requests = (exactly("a", admin=True), exactly("b"))
    marks = {
        entry["request"]: entry.get("adminAccess")
        for entry in entries_of(problem([piece(["g0", "g1"])], claim(*requests)))
    }
    assert marks == {"a": True, "b": None}


def test_tolerations_are_copied_whole() -> None:
    """All tolerations of the request are in the entry, used or not."""
    wanted = [toleration("x", tolerationSeconds=30), toleration("y", effect="NoExecute")]  # type: ignore[arg-type]
    case = problem([piece(["g0"])], claim(exactly(tolerates=wanted)))
    assert entries_of(case)[0]["tolerations"] == wanted


def test_binding_conditions_are_copied_from_the_device() -> None:
    """Both lists of conditions are in the entry."""
    conditions: dict[str, Any] = {
        "bindingConditions": ["ready", "wired"],
        "bindingFailureConditions": ["failed"],
    }
    (entry,) = entries_of(problem([piece([device("g0", **conditions)])], claim(exactly())))
    assert {name: entry[name] for name in conditions} == conditions


def test_every_share_has_an_id_of_its_own() -> None:
    """Two shares of a device differ in their ids."""
    case = problem([piece([shared("g0")])], claim(exactly("a"), exactly("b")), claim(exactly()))
    assert len({entry["shareID"] for entry in entries_of(case)}) == 3


@pytest.mark.parametrize(
    ("policy", "asked", "consumed"),
    [
        pytest.param({}, 3, "3", id="no policy"),
        pytest.param({}, None, "16", id="no policy, no request"),
        pytest.param({"default": "2"}, None, "2", id="default"),
        pytest.param({"default": "2"}, 5, "5", id="default, but asked"),
        pytest.param({"default": "4", "validRange": {"min": "4"}}, 3, "4", id="minimum"),
        pytest.param({"default": "1", "validRange": {"min": "1", "step": "4"}}, 6, "9", id="step"),
        pytest.param(
            {"default": "1", "validRange": {"min": "1", "step": "4"}}, 5, "5", id="on step"
        ),
        pytest.param({"default": "2", "validValues": ["2", "8"]}, 3, "8", id="valid value"),
    ],
)
def test_consumed_capacity_is_rounded_by_the_policy(
    policy: JsonObject, asked: int | None, consumed: str
) -> None:
    """The entry lists what the share takes of every capacity, also of those not asked for."""
    wanted: dict[str, Any] = {} if asked is None else {"asks": {"memory": asked}}
    memory = {"memory": capacity(16, **policy), "links": capacity(2)}
    (entry,) = entries_of(problem([piece([shared("g0", memory)])], claim(exactly(**wanted))))
    found = {name: amount(value) for name, value in entry["consumedCapacity"].items()}
    assert found == {"memory": amount(consumed), "links": 2}


def config_of(case: JsonObject, policy: Policy = BEST) -> list[tuple[str, list[str], str]]:
    results_of(case)
    (result,) = answer(case, policy)["results"]
    return [
        (c["source"], c.get("requests", []), c["opaque"]["parameters"]["mode"])
        for c in result["devices"].get("config", [])
    ]


GPUS = piece([f"g{n}" for n in range(4)])


def test_class_configuration_comes_first_once_per_class() -> None:
    """Each entry of the class is there once, with all requests that the class serves."""
    tuned = [exactly("a", cls="tuned"), exactly("b"), exactly("c", cls="tuned")]
    case = problem([GPUS], claim(*tuned, config=[opaque(GPU, "mine")]), classes=[TUNED])
    assert config_of(case) == [
        ("FromClass", ["a", "c"], "one"),
        ("FromClass", ["a", "c"], "two"),
        ("FromClaim", [], "mine"),
    ]


def test_claim_configuration_is_there_once_with_all_requests_it_names() -> None:
    """An entry that names two requests is there once, with both names, in the order of the claim's entries."""
    config = [
        {"requests": ["a", "b"], **opaque(GPU, "pair")},
        {"requests": ["c"], **opaque(GPU, "one")},
        opaque(GPU, "all"),
    ]
    case = problem([GPUS], claim(exactly("a"), exactly("b"), exactly("c"), config=config))
    once = [
        ("FromClaim", ["a", "b"], "pair"),
        ("FromClaim", ["c"], "one"),
        ("FromClaim", [], "all"),
    ]
    assert config_of(case) == once
    assert config_of(case, FIRST_FIT) == [once[0], *once], "as Kubernetes has it"


def test_configuration_of_alternatives_follows_the_choice() -> None:
    """Only the chosen alternative's class and claim entries are there."""
    listed = first_available("r", exactly("big", 9, cls="tuned"), exactly("small", 1, cls="gpu"))
    config = [
        {"requests": ["r/big"], **opaque(GPU, "big")},
        {"requests": ["r/small"], **opaque(GPU, "small")},
        {"requests": ["r"], **opaque(GPU, "either")},
        {"requests": ["r/big", "r/small"], **opaque(GPU, "each")},
    ]
    case = problem([GPUS], claim(listed, config=config), classes=[TUNED])
    assert config_of(case) == [
        ("FromClaim", ["r/small"], "small"),
        ("FromClaim", ["r"], "either"),
        ("FromClaim", ["r/big", "r/small"], "each"),
    ]


def nic(**fields: Any) -> JsonObject:
    scope = {key: fields.pop(key) for key in ("nodeSelector", "allNodes") if key in fields}
    return piece([device("n0", **fields)], driver=NIC, **scope)


BOTH = claim(exactly("g"), exactly("n", cls="nic"))


@pytest.mark.parametrize(
    ("case", "selector"),
    [
        pytest.param(problem([GPUS], claim(exactly())), HERE, id="local device"),
        pytest.param(
            problem([nic(allNodes=True)], claim(exactly(cls="nic"))), None, id="everywhere"
        ),
        pytest.param(problem([nic(nodeSelector=ZONE)], claim(exactly(cls="nic"))), ZONE, id="zone"),
        pytest.param(problem([GPUS, nic(nodeSelector=ZONE)], BOTH), HERE, id="local and zone"),
        pytest.param(
            problem([nic(nodeSelector=ZONE, bindsToNode=True)], claim(exactly(cls="nic"))),
            HERE,
            id="binds to node",
        ),
        pytest.param(
            problem([piece(["g0"], nodeSelector=ZONE), nic(nodeSelector=ZONE)], BOTH),
            ZONE,
            id="the same zone twice",
        ),
        pytest.param(
            problem(
                [piece([device("g0", nodeName=NODE)], perDeviceNodeSelection=True)],
                claim(exactly()),
            ),
            HERE,
            id="by device",
        ),
        pytest.param(problem([GPUS], claim()), None, id="no devices"),
    ],
)
def test_the_node_selector_says_where_the_devices_can_be_reached(
    case: JsonObject, selector: JsonObject | None
) -> None:
    """Local devices pin the claim to the node, network devices to the nodes that reach them."""
    assert [result.get("nodeSelector") for result in results_of(case)] == [selector]


def test_node_selectors_of_several_devices_are_joined() -> None:
    """Devices with different selectors need a node that satisfies both."""
    tier = label_selector("tier", "2", operator="Gt")
    (result,) = results_of(
        problem([piece(["g0"], nodeSelector=tier), nic(nodeSelector=ZONE)], BOTH)
    )
    (term,) = result["nodeSelector"]["nodeSelectorTerms"]
    assert sorted(r["key"] for r in term["matchExpressions"]) == ["tier", "zone"]
