"""Values that no device has are replaced by ones that devices have, and then the pod fits."""

from __future__ import annotations

import pytest

from explain.remedies.cluster import Cluster, asking, checked, gpus
from oracle.selectors import GPU

MODEL = f'device.attributes["{GPU}"].model'
MEMORY = f'device.capacity["{GPU}"].memory'


def model(name: str) -> list[dict[str, object]]:
    return gpus(1, attributes={"model": {"string": name}})


CASES = [
    (f'{MODEL} == "A100"', 'Write "H100" instead of "A100"'),
    (f"{MODEL} == 'A100'", "Write 'H100' instead of 'A100'"),
    (f'{MODEL} in ["B200", "A100"]', 'Write "H100" instead of "A100"'),
    (f'{MODEL}.startsWith("A1")', 'Write "H100" instead of "A1"'),
    (f'{MEMORY}.compareTo(quantity("200Gi")) >= 0', 'Write "80Gi" instead of "200Gi"'),
    (f'{MODEL} == "H100" && {MEMORY}.isLessThan(quantity("1Gi"))', ""),
]


@pytest.mark.parametrize(("select", "want"), CASES, ids=[case[0] for case in CASES])
def test_the_nearest_value_comes_first(select: str, want: str) -> None:
    """Only that value is written otherwise, as it was quoted; where no value would do, none is named."""
    cluster = Cluster().node("n1", 1).template("wanted", asking(select=(select,))).waiting()
    found = [sentence for sentence in checked(cluster) if sentence.startswith("Write")]
    whole = [f"{want} in the selector of request gpus of template wanted."] if want else []
    assert found == whole


def test_a_value_whose_devices_are_taken_is_passed_over() -> None:
    """Every value is tried: the nearest is in use, the next one is free."""
    cluster = Cluster().node("n1", model("A40")).node("n2", model("H100"))
    cluster.holder("a", "n1", "0").template("wanted", asking(select=(f'{MODEL} == "A41"',)))
    found = checked(cluster.waiting())
    assert found[0].startswith('Write "H100" instead of "A41"')


def test_several_values_in_one_selector() -> None:
    """Values that are all wrong are corrected together, each to the nearest."""
    cluster = Cluster().node("n1", 1)
    wrong = f'{MEMORY}.compareTo(quantity("200Gi")) >= 0 && {MODEL} in ["A100", "B200"]'
    cluster.template("wanted", asking(select=(wrong,))).waiting()
    assert checked(cluster)[0] == (
        'Write "80Gi" instead of "200Gi" and "H100" instead of "A100"'
        " in the selector of request gpus of template wanted."
    )


def test_where_either_of_two_values_may_be_wrong_each_is_corrected_alone() -> None:
    """There are devices that pass the one, and devices that pass the other."""
    cluster = Cluster().node("n1", 1)
    cluster.node(
        "n2",
        gpus(1, attributes={"model": {"string": "A40"}}, capacity={"memory": {"value": "48Gi"}}),
    )
    wrong = f'{MEMORY}.compareTo(quantity("64Gi")) >= 0 && {MODEL} == "A40"'
    cluster.template("wanted", asking(select=(wrong,))).waiting()
    assert [each.partition(" in the")[0] for each in checked(cluster)[:2]] == [
        'Write "48Gi" instead of "64Gi"',
        'Write "H100" instead of "A40"',
    ]


def test_of_a_bound_the_first_that_helps_is_enough() -> None:
    """Lower ones would help as well."""
    cluster = Cluster().node("n1", 1)
    cluster.node("n2", gpus(1, capacity={"memory": {"value": "40Gi"}}))
    wrong = f'{MEMORY}.compareTo(quantity("200Gi")) >= 0'
    cluster.template("wanted", asking(select=(wrong,))).waiting()
    found = [each for each in checked(cluster) if each.startswith("Write")]
    assert [each[:12] for each in found] == ['Write "80Gi"']


def test_a_wrong_value_in_a_full_cluster() -> None:
    """Together with what frees devices of the nearest value."""
    cluster = Cluster().node("n1", 1).holder("a", "n1", "0")
    cluster.template("wanted", asking(select=(f'{MODEL} == "A100"',))).waiting()
    assert checked(cluster)[0] == (
        'Write "H100" instead of "A100" in the selector of request gpus of template wanted,'
        " and delete pod default/a."
    )


@pytest.mark.parametrize(("value", "helps"), [("H-100", True), ("A100", False)])
def test_a_class_is_corrected_where_it_is_misspelt(value: str, helps: bool) -> None:
    """What a class is for is not changed: other values of it are no remedy."""
    cluster = Cluster().node("n1", 1).device_class("mine", f'{MODEL} == "{value}"')
    found = checked(cluster.template("wanted", asking(cls="mine")).waiting())
    want = f'Write "H100" instead of "{value}" in the selector of class mine.'
    assert (want in found) is helps
