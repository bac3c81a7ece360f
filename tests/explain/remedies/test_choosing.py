"""Which remedies are named, in what order, and what is said where not all could be tried."""

from __future__ import annotations

from drayman.explain.remedies.nearness import nearest_first
from drayman.explain.remedies.trying import MOST_NODES, Trials
from drayman.placement.decision.deciding import Decider
from drayman.placement.placing import NotFound
from explain.remedies.cluster import NOW, ROOT, Cluster, asking, checked, gpus, report_on, request
from oracle.selectors import GPU

MODEL = f'device.attributes["{GPU}"].model == "H100"'


def test_what_is_forbidden_comes_first_and_what_is_given_up_last() -> None:
    """The order of families is the order in which people would consider them."""
    cluster = Cluster().node("n1", 4).node("n2", 4, unschedulable=True)
    cluster.holder("a", "n1", "1 2 3").template("wanted", asking(count=2, match=(ROOT,))).waiting()
    assert checked(cluster) == [
        "Uncordon node n2.",
        "Ask for 1 instead of 2 in request gpus of template wanted.",
        "Delete pod default/a.",
    ]


def test_no_more_than_a_few_of_a_kind() -> None:
    """Of three selectors, any of which could be dropped, two are named."""
    cluster = Cluster().node("n1", [*gpus(2), {**gpus(3)[2], "attributes": {}}])
    only = f'"model" in device.attributes["{GPU}"]'
    requests = [request(name, select=(only,)) for name in ("one", "two", "three")]
    cluster.template("wanted", asking(*requests)).waiting()
    assert checked(cluster) == [
        f"Drop the selector `{only}` of request one of template wanted.",
        f"Drop the selector `{only}` of request two of template wanted.",
    ]


def test_two_changes_where_one_is_not_enough() -> None:
    """A misspelt name is corrected and the pod in the way deleted; the patches apply one after the other."""
    cluster = Cluster().node("n1", 1).holder("a", "n1", "0")
    cluster.template("wanted", asking(select=(MODEL.replace("model", "modle"),))).waiting()
    assert checked(cluster)[0] == (
        "Write model instead of modle in the selector of request gpus of template wanted,"
        " and delete pod default/a."
    )


def test_two_changes_of_one_object() -> None:
    """The second of two patches of one object is made for what the first has left of it."""
    cluster = Cluster().node("n1", 2)
    spec = asking(count=2, select=("false", "true"), match=("no.example.com/such",))
    assert checked(cluster.template("wanted", spec).waiting()) == [
        "Drop the selector `false` of request gpus of template wanted,"
        " and drop the constraint on equal no.example.com/such of template wanted."
    ]


def test_a_large_cluster_is_not_tried_in_full() -> None:
    """A remedy that helps on none of the nearest nodes was not tried on the others, and that is said."""
    cluster = Cluster()
    for number in range(MOST_NODES + 6):
        cluster.node(f"n{number}", cpu=1)
    report = report_on(cluster.waiting(cpu="2", nodeSelector={"rack": "3"}).world())
    assert report.untried == (
        f"Each remedy was tried on the {MOST_NODES} nodes that came closest, of {MOST_NODES + 6}."
    )


def test_one_of_each_kind_before_a_second_of_any() -> None:
    """Nodes are tried in turns: first one of each kind, those that could do it with others gone before the rest."""
    cluster = Cluster().template("wanted", asking(count=3))
    for name in ("a", "b", "c"):
        cluster.node(name, 1)
    cluster.node("d", 2).node("e", unschedulable=True).waiting()
    world = cluster.world()
    round_, pod = Decider(world.state).round(NOW), world.pod("default", "waiting")
    assert pod is not None
    found = round_.find(round_.demand(pod))
    assert isinstance(found, NotFound)
    names = [node.facts.name for node in nearest_first(world.state, found.verdicts)]
    assert names == ["d", "a", "e", "b", "c"]


def test_searches_are_counted() -> None:
    """When no more may be made, nothing fits any more."""
    world = Cluster().node("n1").waiting().world()
    pod = world.pod("default", "waiting")
    assert pod is not None
    trials = Trials(world.state, NOW, nearest_first(world.state, {}), 1)
    assert trials.first_fit(trials.round.demand(pod)) is not None
    assert trials.is_spent
    assert trials.first_fit(trials.round.demand(pod)) is None
