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
