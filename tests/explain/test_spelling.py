"""Names that no device has, and what they may have been meant to be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.explain.answer import Spelling
from drayman.reasons.slips import edits, similar
from explain.town import GPU, ROOT, Town
from oracle.build import capacity, claim, device, exactly

DEVICES = [
    device("d0", attrs={"model": "a", "memory": 80, ROOT: "r0"}, capacity={"cores": capacity(8)}),
    device("d1", attrs={"model": "b", ROOT: "r1"}, capacity={"cores": capacity(8)}),
]


def misspelt(select: str, **fields: list[str]) -> tuple[Spelling, ...]:
    town = Town().node("n0", DEVICES).node("n1", DEVICES[:1])
    return town.wants(claim(exactly("gpu", 1, select=[select]), **fields)).explain().spelling


def test_a_misspelt_attribute_is_named_with_the_nearest_names() -> None:
    """The attribute, where it is written, and names like it with the number of devices that have them."""
    text = f'device.attributes["{GPU}"].modle == "a"'
    (found,) = misspelt(text)
    assert (found.claim, found.request, found.selector) == ("c0", "gpu", text)
    assert (found.what, found.attribute) == ("attribute", f"{GPU}/modle")
    assert found.similar == ((f"{GPU}/model", 3),)


NAMED = [
    ("domain", 'device.attributes["gpu.exmaple.com"].model == "a"', f"{GPU}/model"),
    ("other domain", 'device.attributes["nvidia.com"].model == "a"', f"{GPU}/model"),
    ("capital letter", f'device.attributes["{GPU}"].Memory > 40', f"{GPU}/memory"),
    ("standard attribute", 'device.attributes["resource.kubernetes.io"].pcieRot == "r0"', ROOT),
]


@pytest.mark.parametrize(("select", "meant"), [n[1:] for n in NAMED], ids=[n[0] for n in NAMED])
def test_what_was_meant(select: str, meant: str) -> None:
    """Slips in names and domains lead to the name that exists."""
    (found,) = misspelt(select)
    assert found.similar[0][0] == meant


def test_capacities_are_looked_at_too() -> None:
    """A selector can read capacities, which have names of their own."""
    text = f'device.capacity["{GPU}"].core.compareTo(quantity("4")) > 0'
    (found,) = misspelt(text)
    assert (found.what, found.attribute) == ("capacity", f"{GPU}/core")
    assert found.similar == ((f"{GPU}/cores", 3),)


def test_constraints_are_looked_at_too() -> None:
    """A constraint names an attribute as well."""
    found = misspelt("true", match=["resource.kubernetes.io/pcieroot"])
    assert [(item.attribute, item.similar) for item in found] == [
        ("resource.kubernetes.io/pcieroot", ((ROOT, 3),))
    ]


def test_names_that_are_like_nothing_have_no_suggestion() -> None:
    """An unknown attribute is still told, but nothing is made up."""
    (found,) = misspelt(f'device.attributes["{GPU}"].temperature < 50')
    assert found.similar == ()


def test_selectors_that_match_may_name_what_is_not_there() -> None:
    """Asking whether an attribute is absent is no mistake."""
    town = Town().node("n0", DEVICES)
    absent = f'!has(device.attributes["{GPU}"].broken)'
    found = town.wants(claim(exactly("gpu", 9, select=[absent]))).explain()
    assert found.spelling == ()


def test_a_selector_that_does_not_compile_reads_nothing() -> None:
    """That is another reason, and has its own words."""
    assert misspelt("device.nosuch == 1") == ()


WORDS = st.text(alphabet="abc", max_size=6)


@given(first=WORDS, second=WORDS, third=WORDS)
def test_edits_are_a_distance(first: str, second: str, third: str) -> None:
    """Zero exactly for equal words, the same both ways, and no less than the difference in length."""
    assert (edits(first, second) == 0) == (first == second)
    assert edits(first, second) == edits(second, first)
    assert abs(len(first) - len(second)) <= edits(first, second) <= max(len(first), len(second))
    # One word more at the end costs what it is long.
    assert edits(first, first + third) == len(third)


def test_swapped_letters_are_one_slip() -> None:
    """The commonest typing error counts once."""
    assert edits("modle", "model") == 1


def test_nearer_names_come_first() -> None:
    """The order is by slips, then by name."""
    known = {"d/modem": 1, "d/model": 2, "d/mode": 3}
    assert [name for name, _ in similar("d/modell", known)] == ["d/model", "d/mode", "d/modem"]
