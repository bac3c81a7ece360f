"""Which mappings are accepted, and what replacing them concerns: cases D62 and D75 of the specification, with their names."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.quota.charging.mapping_rules import MappingsError, read_mappings
from drayman.quota.charging.mappings import DeviceClassMappings
from drayman.quota.charging.rules import Gates
from quota.charging.pricing_cases import capacity_source, counter, maps

JsonObject = dict[str, Any]
FIELD = "resources.deviceClassMappings"
MEMORY = maps("memory", "mig", sources=[counter("memory")])


def read(*mappings: JsonObject, gates: Gates | None = None) -> DeviceClassMappings:
    return read_mappings({"resources": {"deviceClassMappings": list(mappings)}}, gates, strict=True)


def source(**changes: Any) -> JsonObject:
    """A counter source with some fields replaced; None leaves one out."""
    made = {**counter()["counter"], **changes}
    return {"counter": {name: value for name, value in made.items() if value is not None}}


ACCEPTED = {
    "D62 different counters": [
        MEMORY,
        maps("compute", "mig", sources=[counter("multiprocessors")]),
    ],
    "D75 sixteen mappings": [maps(f"m{n}", f"c{n}") for n in range(16)],
    "D75 eight classes": [maps("m", *(f"c{n}" for n in range(8)))],
    "several sources": [maps("m", "c", sources=[counter(), counter(select="false")])],
    "a qualified capacity": [maps("m", "c", sources=[capacity_source("gpu.example.com/memory")])],
    "nothing": [],
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_mappings_that_are_accepted(name: str) -> None:
    """They are kept in their order."""
    assert [each.name for each in read(*ACCEPTED[name]).entries] == [
        each["name"] for each in ACCEPTED[name]
    ]


REFUSED: dict[str, tuple[list[JsonObject], str, Gates | None]] = {
    "D62 the same counter": (
        [MEMORY, maps("again", "mig", sources=[counter("memory", select="false")])],
        "[1].deviceClassNames[0]",
        None,
    ),
    "D62 a counter and a count": ([MEMORY, maps("plain", "mig")], "[1].deviceClassNames[0]", None),
    "D75 counters are off": ([MEMORY], "[0].sources[0].counter", Gates(counters=False)),
    "D75 capacity is off": (
        [maps("m", "c", sources=[capacity_source()])],
        "[0].sources[0].capacity",
        Gates(capacity=False),
    ),
    "D75 both kinds": (
        [maps("m", "c", sources=[counter(), capacity_source()])],
        "[0].sources",
        None,
    ),
    "D75 neither kind": ([maps("m", "c", sources=[{}])], "[0].sources[0]", None),
    "both in one entry": (
        [maps("m", "c", sources=[counter() | capacity_source()])],
        "[0].sources[0]",
        None,
    ),
    "D75 no driver": (
        [maps("m", "c", sources=[source(driver=None)])],
        "[0].sources[0].counter.driver",
        None,
    ),
    "upper case in a driver": (
        [maps("m", "c", sources=[source(driver="GPU.example.com")])],
        "[0].sources[0].counter.driver",
        None,
    ),
    "D75 no selector": (
        [maps("m", "c", sources=[source(deviceSelector=None)])],
        "[0].sources[0].counter.deviceSelector.cel.expression",
        None,
    ),
    "D75 bad CEL": (
        [maps("m", "c", sources=[counter(select="device.x ===")])],
        "[0].sources[0].counter.deviceSelector.cel.expression",
        None,
    ),
    "no name of a counter": (
        [maps("m", "c", sources=[source(name="")])],
        "[0].sources[0].counter.name",
        None,
    ),
    "no name of a capacity": (
        [maps("m", "c", sources=[capacity_source("")])],
        "[0].sources[0].capacity.name",
        None,
    ),
    "D75 17 mappings": ([maps(f"m{n}", f"c{n}") for n in range(17)], "", None),
    "D75 9 classes": ([maps("m", *(f"c{n}" for n in range(9)))], "[0].deviceClassNames", None),
    "D75 a class twice": ([maps("m", "c", "c")], "[0].deviceClassNames[1]", None),
    "D75 a class in two mappings": (
        [maps("m", "c"), maps("n", "c")],
        "[1].deviceClassNames[0]",
        None,
    ),
    "no classes": ([maps("m")], "[0].deviceClassNames", None),
    "no name": ([maps("", "c")], "[0].name", None),
    "a name that is none": ([maps("a/b/c", "c")], "[0].name", None),
    "a name twice": ([maps("m", "c"), maps("m", "d")], "[1]", None),
    "a class that is none": ([maps("m", "Not A Class")], "[0].deviceClassNames[0]", None),
    "a number for a name": ([{"name": 3, "deviceClassNames": ["c"]}], "[0].name", None),
}


@pytest.mark.parametrize("name", REFUSED)
def test_mappings_that_are_refused(name: str) -> None:
    """The field that is wrong is named, and it is the only one."""
    mappings, field, gates = REFUSED[name]
    with pytest.raises(MappingsError) as caught:
        read(*mappings, gates=gates)
    assert {error.path for error in caught.value.errors} == {f"{FIELD}{field}"}


def test_kueues_capacity_gate_is_off_by_default() -> None:
    """A Configuration that Kueue refuses to start with is refused as Kueue's, and accepted as ours."""
    mapping = maps("m", "c", sources=[capacity_source()])
    with pytest.raises(MappingsError, match="KueueDRAIntegrationConsumableCapacity"):
        read(mapping, gates=Gates.of_kueue({}))
    assert read(mapping, gates=Gates.of_kueue({"KueueDRAIntegrationConsumableCapacity": True}))
    assert read(mapping)


def test_sources_whose_gate_is_off_can_be_left_out() -> None:
    """Their devices are counted then, as Kueue does it once it runs."""
    given = [maps("m", "c", sources=[capacity_source()]), maps("n", "d", sources=[counter()])]
    configuration = {"resources": {"deviceClassMappings": given}}
    found = read_mappings(configuration, Gates.of_kueue({}))
    assert [bool(entry.sources) for entry in found.entries] == [False, True]
    none = read_mappings(configuration, Gates(counters=False, capacity=False))
    assert [bool(entry.sources) for entry in none.entries] == [False, False]


def test_replacing_mappings_concerns_what_is_charged_differently() -> None:
    """Classes that keep their mapping are left alone, wherever it stands in the list."""
    before = read(maps("gpus", "gpu", "big"), maps("nics", "nic"), MEMORY)
    assert not before.difference(
        read(*reversed([maps("gpus", "gpu", "big"), maps("nics", "nic"), MEMORY]))
    )
    after = read(maps("gpus", "gpu", "big"), maps("cards", "nic"))
    assert before.difference(after).classes == {"nic", "mig"}
    assert before.difference(after).drivers == {"gpu.example.com"}
    assert read(maps("a", "c")).difference(read(maps("a", "c", "d"))).classes == {"d"}
