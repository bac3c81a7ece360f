"""Names that no device has are corrected where they are written, and then the pod fits."""

from __future__ import annotations

import pytest

from drayman.explain.remedies.respelling import respelt
from explain.remedies.cluster import Cluster, asking, checked
from oracle.selectors import GPU

GOOD = f'device.attributes["{GPU}"].model == "H100"'


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param(
            'device.attributes["d"].nmae == 1', 'device.attributes["d"].name == 1', id="."
        ),
        pytest.param("device.attributes['d']['nmae']", "device.attributes['d']['name']", id="[]"),
        pytest.param(
            '"nmae" in device.attributes["d"]', '"name" in device.attributes["d"]', id="in"
        ),
        pytest.param('a.nmae1 == "the nmae"', 'a.nmae1 == "the nmae"', id="parts of words stay"),
        pytest.param(
            "a . nmae // nmae\n&& b", "a . name // nmae\n&& b", id="spaces, comments stay"
        ),
    ],
)
def test_respelt(expression: str, want: str) -> None:
    """The wrong name is replaced wherever it is written as a name of its own; all else stays as it is."""
    assert respelt(expression, {"d/nmae": "d/name"}) == want


def test_respelt_with_another_domain() -> None:
    """Domain and name are replaced each for itself."""
    wanted = 'device.attributes["right"].name'
    assert respelt('device.attributes["wrong"].nmae', {"wrong/nmae": "right/name"}) == wanted


def test_in_a_request() -> None:
    """A misspelt attribute is corrected before anything is given up."""
    cluster = Cluster().node("n1", 1)
    cluster.template("wanted", asking(select=(GOOD.replace("model", "modle"),))).waiting()
    want = "Write model instead of modle in the selector of request gpus of template wanted."
    assert checked(cluster)[0] == want


def test_several_names_in_one_selector() -> None:
    """Names that are all wrong are corrected together."""
    wrong = GOOD.replace("model", "modle")
    wrong += f' && device.capacity["{GPU}"].memroy.compareTo(quantity("40Gi")) > 0'
    cluster = Cluster().node("n1", 1).template("wanted", asking(select=(wrong,))).waiting()
    want = (
        "Write model instead of modle and memory instead of memroy"
        " in the selector of request gpus of template wanted."
    )
    assert checked(cluster)[0] == want


def test_a_domain() -> None:
    """A wrong domain is told with the name."""
    cluster = Cluster().node("n1", 1)
    cluster.template("wanted", asking(select=(GOOD.replace(GPU, "gpu.exmaple.com"),))).waiting()
    assert checked(cluster)[0] == (
        f"Write {GPU}/model instead of gpu.exmaple.com/model"
        " in the selector of request gpus of template wanted."
    )


def test_in_a_constraint() -> None:
    """A constraint on a misspelt attribute is corrected rather than dropped."""
    cluster = Cluster().node("n1", 2)
    wrong = "resource.kubernetes.io/pcieroot"
    cluster.template("wanted", asking(count=2, match=(wrong,))).waiting()
    assert (
        checked(cluster)[0]
        == "Write pcieRoot instead of pcieroot in a constraint of template wanted."
    )


def test_in_a_class() -> None:
    """A misspelt attribute in a class is corrected there."""
    cluster = Cluster().node("n1", 1).device_class("h100", GOOD.replace("model", "modle"))
    cluster.template("wanted", asking(cls="h100")).waiting()
    assert checked(cluster)[0] == "Write model instead of modle in the selector of class h100."
