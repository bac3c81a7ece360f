"""Devices that are counted: cases D1 to D28 of the specification, with their names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from drayman.api.integers import INT64_MAX
from drayman.api.resource import DeviceClass
from drayman.quota.charging.mapping_rules import read_mappings
from drayman.quota.charging.outcome import Code
from drayman.quota.charging.rules import KUEUE, Gates, Rules
from drayman.quota.demands import PodSetRequest
from oracle.build import device, device_class, everything, exactly, first_available, piece
from oracle.selectors import GPU, NIC
from quota.charging.pricing_cases import (
    CLASSES,
    ON_GPU,
    attribute_is,
    charged,
    cluster,
    maps,
    pods,
    price,
    pricing,
    refused,
    template,
)

JsonObject = dict[str, Any]
MODEL_A = attribute_is("model", "a")
GPUS = piece([device(f"g{n}", attrs={"model": "a" if n < 2 else "b"}) for n in range(3)])


@dataclass(frozen=True)
class Priced:
    """Templates, of each of which a pod has a claim, and what that costs."""

    says: str
    templates: dict[str, list[JsonObject]]
    charges: dict[str, int]
    slices: list[JsonObject] = field(default_factory=list)
    entries: tuple[str, ...] = ()
    """The templates that the pod names, if it does not name each of them once."""


PRICED = {
    "D1": Priced("a template of two devices costs two", {"t": [exactly(count=2)]}, {"gpus": 2}),
    "D3": Priced(
        "templates of different classes are charged under their names",
        {"t": [exactly(count=2)], "u": [exactly(cls="nic")]},
        {"gpus": 2, "nics": 1},
    ),
    "D9": Priced(
        "a mode that is left out is a number of devices",
        {"t": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}]},
        {"gpus": 2},
    ),
    "D10": Priced(
        "one of two devices that match costs one",
        {"t": [exactly(select=[ON_GPU])]},
        {"gpus": 1},
        [GPUS],
    ),
    "D11": Priced(
        "devices that the class leaves out are not shown to the request's selector, which would fail on them",
        {"t": [exactly(select=[MODEL_A])]},
        {"gpus": 1},
        [
            piece([device("g", attrs={"model": "a"})]),
            piece(["n0", "n1", "n2"], driver=NIC, pool="nics"),
        ],
    ),
    "D17": Priced(
        "a request without a class is not charged",
        {
            "t": [
                {
                    "name": "r",
                    "exactly": {
                        "count": 1,
                        "selectors": exactly(select=[ON_GPU])["exactly"]["selectors"],
                    },
                }
            ]
        },
        {},
        [GPUS],
    ),
    "D20": Priced("admin access costs nothing", {"t": [exactly(admin=True)]}, {}),
    "D21": Priced(
        "admin access beside ordinary requests costs nothing",
        {"t": [exactly("a", admin=True), exactly("b", count=2)]},
        {"gpus": 2},
    ),
    "D22 saturates": Priced(
        "sums stay within what can be counted",
        {"t": [exactly("a", count=INT64_MAX), exactly("b", count=INT64_MAX)]},
        {"gpus": INT64_MAX},
    ),
    "D22 adds up": Priced(
        "requests of a claim add up",
        {"t": [exactly("a", count=2), exactly("b", count=3)]},
        {"gpus": 5},
    ),
    "a template named twice": Priced(
        "every entry of a pod is a claim of its own",
        {"t": [exactly(count=2)]},
        {"gpus": 4},
        entries=("t", "t"),
    ),
}


@pytest.mark.parametrize("rules", [Rules(), KUEUE], ids=["ours", "kueue"])
@pytest.mark.parametrize("name", PRICED)
def test_prices(name: str, rules: Rules) -> None:
    """Templates cost what the case says, by our rules and by Kueue's."""
    case = PRICED[name]
    state = cluster(*case.slices, templates=case.templates)
    found = price(state, pods(*(case.entries or case.templates)), rules=rules)
    assert charged(found) == case.charges


@dataclass(frozen=True)
class NotPriced:
    """A template without a price, and why."""

    says: str
    requests: list[JsonObject]
    code: Code
    field: str
    retryable: bool
    slices: list[JsonObject] = field(default_factory=list)
    rules: Rules | None = None
    mentions: str = ""


NOT_PRICED = {
    "D2": NotPriced(
        "a class without a mapping cannot be charged",
        [exactly(cls="other")],
        Code.CLASS_UNMAPPED,
        "requests[0].exactly.deviceClassName",
        retryable=False,
        mentions="other",
    ),
    "D6": NotPriced(
        "Kueue refuses all devices of a node",
        [everything()],
        Code.UNSUPPORTED,
        "requests[0].exactly.allocationMode",
        retryable=False,
        rules=KUEUE,
    ),
    "D7": NotPriced(
        "Kueue refuses alternatives",
        [first_available("r", exactly("a"))],
        Code.UNSUPPORTED,
        "requests[0].firstAvailable",
        retryable=False,
        rules=KUEUE,
    ),
    "D8": NotPriced(
        "a request that asks for nothing makes no sense",
        [{"name": "r"}],
        Code.UNSUPPORTED,
        "requests[0]",
        retryable=False,
    ),
    "D12": NotPriced(
        "no device matches",
        [exactly(count=2, select=["false"])],
        Code.DEVICE_SHORTAGE,
        "requests[0].exactly",
        retryable=True,
        slices=[GPUS],
        mentions="2 wanted, 0 match",
    ),
    "D13": NotPriced(
        "too few devices match",
        [exactly(count=3, select=[MODEL_A])],
        Code.DEVICE_SHORTAGE,
        "requests[0].exactly",
        retryable=True,
        slices=[GPUS],
        mentions="3 wanted, 2 match",
    ),
    "D14": NotPriced(
        "two requests cannot have the same device: the second one is short",
        [exactly("a", select=[ON_GPU]), exactly("b", select=[ON_GPU])],
        Code.DEVICE_SHORTAGE,
        "requests[1].exactly",
        retryable=True,
        slices=[piece(["only"])],
    ),
    "D15": NotPriced(
        "a selector that does not compile never will",
        [exactly(select=["device.nonsense ==="])],
        Code.SELECTOR_INVALID,
        "requests[0].exactly.selectors[0]",
        retryable=False,
        slices=[GPUS],
    ),
    "D16": NotPriced(
        "selectors need the class, which may still come",
        [exactly(cls="late", select=["true"])],
        Code.CLASS_MISSING,
        "requests[0].exactly.deviceClassName",
        retryable=True,
        slices=[GPUS],
    ),
    "an unknown mode": NotPriced(
        "a mode that is not known cannot be charged",
        [{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "Some"}}],
        Code.UNSUPPORTED,
        "requests[0].exactly.allocationMode",
        retryable=False,
    ),
    "a selector that fails": NotPriced(
        "a selector that fails on a device decides nothing",
        [exactly(select=[attribute_is("missing", "x")])],
        Code.SELECTOR_INVALID,
        "requests[0].exactly.selectors",
        retryable=True,
        slices=[GPUS],
    ),
}


@pytest.mark.parametrize("name", NOT_PRICED)
def test_has_no_price(name: str) -> None:
    """The refusal names the field and what is wrong, and Kueue's condition says Misconfigured."""
    case = NOT_PRICED[name]
    classes = [*CLASSES, device_class("other")]
    mappings = [maps("gpus", "gpu", "late"), maps("nics", "nic")]
    state = cluster(*case.slices, templates={"t": case.requests}, classes=classes)
    found = refused(price(state, pods("t"), mappings=mappings, rules=case.rules))
    assert (found.code, found.retryable, found.reason) == (
        case.code,
        case.retryable,
        "Misconfigured",
    )
    assert found.path == f"resourceclaimtemplate/t spec.spec.devices.{case.field}"
    assert found.message.startswith(found.path)
    assert case.mentions in found.message


def test_d2_a_mapping_that_comes_later_gives_a_price() -> None:
    """A class that could not be charged can once a mapping names it: mappings are replaced while others wait."""
    state = cluster(
        templates={"t": [exactly(count=2, cls="other")]}, classes=[device_class("other")]
    )
    asked = pricing(state)
    assert refused(asked.price("default", "main", pods("t"))).code is Code.CLASS_UNMAPPED
    asked.mappings = read_mappings(
        {"resources": {"deviceClassMappings": [maps("others", "other")]}}
    )
    assert charged(asked.price("default", "main", pods("t"))) == {"others": 2}


def test_d4_containers_that_share_a_claim_are_charged_once() -> None:
    """What counts are the entries of the pod, however many of its containers use them."""
    state = cluster(templates={"t": [exactly(count=2)]})
    assert charged(price(state, pods("t", containers=({}, {})))) == {"gpus": 2}


def test_d5_init_and_main_container_that_share_a_claim_are_charged_once() -> None:
    """The same with a container that runs before the other."""
    state = cluster(templates={"t": [exactly(count=2)]})
    assert charged(price(state, pods("t", inits=({},)))) == {"gpus": 2}


def test_d18_constraints_do_not_change_the_price() -> None:
    """Two requests whose devices must agree in an attribute cost two."""
    state = cluster()
    requests = [exactly("a"), exactly("b")]
    state.set_template(template("t", requests, constraints=[{"matchAttribute": f"{GPU}/numa"}]))
    assert charged(price(state, pods("t"))) == {"gpus": 2}


def test_d19_configuration_does_not_change_the_price() -> None:
    """Parameters for a driver cost nothing."""
    state = cluster()
    config = [{"opaque": {"driver": GPU, "parameters": {"mode": "fast"}}}]
    state.set_template(template("t", [exactly()], config=config))
    assert charged(price(state, pods("t"))) == {"gpus": 1}


def test_d20_admin_access_is_counted() -> None:
    """What costs nothing is known all the same."""
    found = price(cluster(templates={"t": [exactly(count=3, admin=True)]}), pods("t"))
    assert charged(found) == {}
    assert found.admin_devices == 3


def test_d24_the_price_is_that_of_one_pod() -> None:
    """Three pods of one device each are charged one device a pod: the engine multiplies."""
    state = cluster(templates={"t": [exactly()]})
    assert charged(price(state, pods("t"), count=3)) == {"gpus": 1}


def test_d25_kueue_refuses_claims_that_pods_name() -> None:
    """By Kueue's rules there is no price for a claim, and none will come."""
    found = refused(price(cluster(), pods(claims=["c"]), rules=KUEUE))
    assert (found.code, found.retryable) == (Code.UNSUPPORTED, False)
    assert found.path == "spec.podSets[main].template.spec.resourceClaims[0].resourceClaimName"


@pytest.mark.parametrize("template", [pods("t"), pods(claims=["c"])], ids=["template", "claim"])
def test_d26_with_device_quota_off_claims_are_refused(template: Any) -> None:
    """Workloads with devices would otherwise get them for nothing; those without are not concerned."""
    state, off = cluster(templates={"t": [exactly()]}), Gates(devices=False)
    assert refused(price(state, template, mappings=(), gates=off)).code is Code.UNSUPPORTED
    assert charged(price(state, pods(containers=({"cpu": "1"},)), mappings=(), gates=off)) == {}
    lenient = Gates(devices=False, refuses_when_off=False)
    assert charged(price(state, template, mappings=(), gates=lenient)) == {}


def test_d27_a_template_that_is_missing_may_come() -> None:
    """Nothing is known about the devices until it does, and templates of other namespaces do not count."""
    state = cluster(templates={"t": [exactly()]}, namespace="elsewhere")
    found = refused(price(state, pods("t")))
    assert (found.code, found.retryable) == (Code.TEMPLATE_MISSING, True)
    assert found.path.endswith("resourceClaims[0].resourceClaimTemplateName")
    state.set_template(template("t", [exactly()]))
    assert charged(price(state, pods("t"))) == {"gpus": 1}


def test_d28_without_slices_selectors_are_short_of_devices() -> None:
    """What cannot be listed is not there: the price is asked for again when slices come."""
    state = cluster(templates={"t": [exactly(select=["true"])]})
    assert refused(price(state, pods("t"))).retryable


def test_a_class_that_does_not_exist_has_no_price_but_kueues() -> None:
    """Nothing could be allocated; Kueue charges all the same where no selector needs the class."""
    state = cluster(templates={"t": [exactly()]}, classes=[])
    found = refused(price(state, pods("t")))
    assert (found.code, found.retryable) == (Code.CLASS_MISSING, True)
    assert charged(price(state, pods("t"), rules=KUEUE)) == {"gpus": 1}
    state.set_class(DeviceClass())
    assert refused(price(state, pods("t"))).code is Code.CLASS_MISSING


def test_pod_sets_are_priced_apart() -> None:
    """Each pod set has its own price; the first without one decides for the workload."""
    state = cluster(templates={"t": [exactly()], "u": [exactly(count=2), exactly("n", cls="nic")]})
    asked = pricing(state)
    sets = [PodSetRequest("a", 1, pods("t")), PodSetRequest("b", 2, pods("u"))]
    found = asked.price_workload("default", sets)
    assert isinstance(found, dict)
    assert {name: dict(each.charges) for name, each in found.items()} == {
        "a": {"gpus": 1},
        "b": {"gpus": 2, "nics": 1},
    }
    missing = asked.price_workload("default", [*sets, PodSetRequest("c", 1, pods("none"))])
    assert not isinstance(missing, dict)
    assert "podSets[c]" in missing.path
