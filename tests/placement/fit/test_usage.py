"""What is left of a node."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.placement.fit import FITS, Cause, NodeUsage, PodNeeds, Verdict, usage_verdict
from placement.fit.objects import container, facts, needs

GPU = "example.com/gpu"
SMALL = {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "10Gi", "pods": "3", GPU: "2"}
NO_PORTS = "node(s) didn't have free ports for the requested pod ports"


def using(*pods: PodNeeds) -> NodeUsage:
    usage = NodeUsage()
    for pod in pods:
        usage.add(pod)
    return usage


RESOURCES: dict[str, tuple[list[dict[str, str]], dict[str, str], tuple[str, ...], bool]] = {
    "an empty node": (
        [],
        {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "10Gi", GPU: "2"},
        (),
        False,
    ),
    "the last of it": ([{"cpu": "1500m"}], {"cpu": "500m"}, (), False),
    "a little too much": ([{"cpu": "1500m"}], {"cpu": "501m"}, ("Insufficient cpu",), True),
    "more than the node is": ([], {"cpu": "3"}, ("Insufficient cpu",), False),
    "memory": ([{"memory": "3Gi"}], {"memory": "2Gi"}, ("Insufficient memory",), True),
    "storage": (
        [{"ephemeral-storage": "9Gi"}],
        {"ephemeral-storage": "2Gi"},
        ("Insufficient ephemeral-storage",),
        True,
    ),
    "all that is short is named": (
        [{"cpu": "2", "memory": "4Gi"}],
        {"cpu": "1", "memory": "1Gi", GPU: "1"},
        ("Insufficient cpu", "Insufficient memory"),
        True,
    ),
    "one that no leaving helps": (
        [{"cpu": "2"}],
        {"cpu": "1", "memory": "5Gi"},
        ("Insufficient cpu", "Insufficient memory"),
        False,
    ),
    "extended": ([{GPU: "1"}], {GPU: "2"}, (f"Insufficient {GPU}",), True),
    "extended that the node has not": (
        [],
        {"example.com/x": "1"},
        ("Insufficient example.com/x",),
        False,
    ),
    "none of an extended one": ([], {"example.com/x": "0"}, (), False),
    "a full node takes what asks for nothing of what is short": (
        [{"cpu": "2"}],
        {"memory": "1Gi"},
        (),
        False,
    ),
    "too many pods": ([{}, {}, {}], {}, ("Too many pods",), True),
    "too many pods and no cpu": (
        [{"cpu": "1"}, {"cpu": "1"}, {}],
        {"cpu": "1"},
        ("Too many pods", "Insufficient cpu"),
        True,
    ),
}


@pytest.mark.parametrize(
    ("there", "asked", "reasons", "resolvable"), RESOURCES.values(), ids=RESOURCES
)
def test_resources(
    there: list[dict[str, str]], asked: dict[str, str], reasons: tuple[str, ...], resolvable: bool
) -> None:
    """A pod fits where enough is left of everything it asks for; preemption can help where the node is large enough."""
    usage = using(*(needs(requests) for requests in there))
    verdict = usage_verdict(needs(asked), facts(allocatable=SMALL), usage)
    refusal = Verdict.refusal(Cause.RESOURCES, *reasons, resolvable=resolvable)
    assert verdict is (refusal if reasons else FITS)


def test_a_node_without_allocatable_takes_no_pod() -> None:
    """A node that has not said how many pods it takes, takes none."""
    verdict = usage_verdict(needs(), facts(allocatable={}), NodeUsage())
    assert verdict.reasons == ("Too many pods",)


def test_delegated_resources_are_not_looked_for() -> None:
    """A resource that devices stand in for is left to them; others are still checked."""
    pod = needs({"example.com/dra": "1", "example.com/x": "1"})
    verdict = usage_verdict(pod, facts(), NodeUsage(), frozenset({"example.com/dra"}))
    assert verdict.reasons == ("Insufficient example.com/x",)


def port(number: int, address: str = "", protocol: str = "") -> dict[str, Any]:
    return {"containerPort": 80, "hostPort": number, "hostIP": address, "protocol": protocol}


PORTS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "the same": (port(80), port(80), False),
    "another number": (port(80), port(81), True),
    "another protocol": (port(80), port(80, protocol="UDP"), True),
    "tcp is the default": (port(80), port(80, protocol="TCP"), False),
    "another address": (port(80, "10.0.0.1"), port(80, "10.0.0.2"), True),
    "all addresses against one": (port(80, "10.0.0.1"), port(80), False),
    "one address against all": (port(80, "0.0.0.0"), port(80, "10.0.0.1"), False),
    "no host port": (port(80), port(0), True),
}


def with_port(wanted: dict[str, Any]) -> PodNeeds:
    return needs(containers=[container(ports=[wanted])])


@pytest.mark.parametrize(("taken", "wanted", "fits"), PORTS.values(), ids=PORTS)
def test_ports(taken: dict[str, Any], wanted: dict[str, Any], fits: bool) -> None:
    """A host port is taken by address, protocol and number, and all addresses means each."""
    verdict = usage_verdict(with_port(wanted), facts(), using(with_port(taken)))
    assert verdict is (FITS if fits else Verdict.refusal(Cause.PORTS, NO_PORTS, resolvable=True))


def test_ports_of_init_containers() -> None:
    """Sidecars keep their ports; init containers that end give them back."""
    sidecar = needs(initContainers=[container(ports=[port(80)], restartPolicy="Always")])
    first = needs(initContainers=[container(ports=[port(80)])])
    assert usage_verdict(with_port(port(80)), facts(), using(sidecar)) is not FITS
    assert usage_verdict(with_port(port(80)), facts(), using(first)) is FITS


def test_a_port_is_free_when_the_last_that_has_it_leaves() -> None:
    """Two pods that were placed by hand on one port free it together."""
    one, two = with_port(port(80)), with_port(port(80))
    usage = using(one, two)
    usage.remove(one.uid)
    assert usage_verdict(with_port(port(80)), facts(), usage) is not FITS
    usage.remove(two.uid)
    assert usage_verdict(with_port(port(80)), facts(), usage) is FITS


def test_pods_are_counted_once() -> None:
    """Counting a pod twice, or one out that is not in, is an error."""
    pod, usage = needs(), NodeUsage()
    usage.add(pod)
    with pytest.raises(ValueError, match="already"):
        usage.add(pod)
    usage.remove(pod.uid)
    with pytest.raises(ValueError, match="no pod"):
        usage.remove(pod.uid)


amounts = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["0", "1m", "100m", "3"]),
        "memory": st.sampled_from(["1", "1Mi", "200M"]),
        "ephemeral-storage": st.just("1Gi"),
        GPU: st.sampled_from(["0", "1", "2"]),
    },
)
some_pods = st.builds(
    lambda requests, ports: needs(
        containers=[container(requests, ports=[port(number) for number in ports])]
    ),
    amounts,
    st.lists(st.integers(0, 3), max_size=2, unique=True),
)


@given(st.lists(some_pods, max_size=6), st.lists(some_pods, max_size=6), st.randoms())
def test_removing_undoes_adding(stay: list[PodNeeds], leave: list[PodNeeds], random: Any) -> None:
    """Pods that came and left, in any order, leave no trace."""
    usage = using(*stay)
    before = usage.room_key
    for pod in leave:
        usage.add(pod)
    random.shuffle(leave)
    for pod in leave:
        assert usage.remove(pod.uid) is pod
    assert usage.room_key == before == using(*reversed(stay)).room_key
