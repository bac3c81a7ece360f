"""What the node object alone says of a pod."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.placement.fit import FITS, Cause, StaticVerdicts, Verdict, static_verdict
from placement.fit.objects import facts, needs, taint

TAINTED = "node(s) had untolerated taint(s)"
NOT_CHOSEN = "node(s) didn't match Pod's node affinity/selector"
CORDONED = "node(s) were unschedulable"
OTHER_NAME = "node(s) didn't match the requested node name"
CAUSES = {
    TAINTED: Cause.NODE_TAINT,
    NOT_CHOSEN: Cause.NODE_AFFINITY,
    CORDONED: Cause.CORDONED,
    OTHER_NAME: Cause.NODE_NAME,
}


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def named(operator: str, *values: str) -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": operator, "values": list(values)}
    return {"matchFields": [field]}


def toleration(**fields: str) -> dict[str, Any]:
    return {"tolerations": [fields]}


DEDICATED = {"taints": [taint("dedicated", "gpu")]}
NUMBERED = {"taints": [taint("sla", "95")]}
CORDON = {"unschedulable": True}

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "an empty pod on a plain node": ({}, {}, ""),
    "a cordoned node": ({}, CORDON, CORDONED),
    "a cordoned node, tolerated": (
        toleration(key="node.kubernetes.io/unschedulable", operator="Exists"),
        CORDON,
        "",
    ),
    "the node asked for by name": ({"nodeName": "node-a"}, {}, ""),
    "another node asked for by name": ({"nodeName": "node-b"}, {}, OTHER_NAME),
    "a taint": ({}, DEDICATED, TAINTED),
    "a taint that evicts": ({}, {"taints": [taint("x", effect="NoExecute")]}, TAINTED),
    "a taint that only discourages": ({}, {"taints": [taint("x", effect="PreferNoSchedule")]}, ""),
    "a taint, tolerated by value": (toleration(key="dedicated", value="gpu"), DEDICATED, ""),
    "a taint, another value tolerated": (
        toleration(key="dedicated", operator="Equal", value="cpu"),
        DEDICATED,
        TAINTED,
    ),
    "a taint, another key tolerated": (
        toleration(key="other", operator="Exists"),
        DEDICATED,
        TAINTED,
    ),
    "a taint, another effect tolerated": (
        toleration(key="dedicated", operator="Exists", effect="NoExecute"),
        DEDICATED,
        TAINTED,
    ),
    "everything tolerated": (toleration(operator="Exists"), DEDICATED, ""),
    "an operator nobody knows": (toleration(key="dedicated", operator="Like"), DEDICATED, TAINTED),
    "a number above": (toleration(key="sla", operator="Gt", value="90"), NUMBERED, ""),
    "a number not above": (toleration(key="sla", operator="Gt", value="95"), NUMBERED, TAINTED),
    "a number below": (toleration(key="sla", operator="Lt", value="96"), NUMBERED, ""),
    "a number compared with a word": (
        toleration(key="dedicated", operator="Gt", value="1"),
        DEDICATED,
        TAINTED,
    ),
    "one taint of two tolerated": (
        toleration(key="a", operator="Exists"),
        {"taints": [taint("a"), taint("b")]},
        TAINTED,
    ),
    "a selector met": ({"nodeSelector": {"disk": "ssd"}}, {"labels": {"disk": "ssd"}}, ""),
    "a selector not met": (
        {"nodeSelector": {"disk": "ssd"}},
        {"labels": {"disk": "hdd"}},
        NOT_CHOSEN,
    ),
    "a selector on an absent label": ({"nodeSelector": {"disk": "ssd"}}, {}, NOT_CHOSEN),
    "affinity met": (
        {"affinity": affinity(expression("disk", "In", "ssd", "nvme"))},
        {"labels": {"disk": "nvme"}},
        "",
    ),
    "affinity with alternatives": (
        {"affinity": affinity(expression("disk", "In", "ssd"), expression("gpu", "Exists"))},
        {"labels": {"gpu": ""}},
        "",
    ),
    "affinity without terms": ({"affinity": affinity()}, {}, NOT_CHOSEN),
    "affinity with an empty term": ({"affinity": affinity({})}, {}, NOT_CHOSEN),
    "a term that makes no sense, and one that is met": (
        {"affinity": affinity(expression("x", "Like", "y"), expression("disk", "DoesNotExist"))},
        {},
        "",
    ),
    "affinity met and selector not": (
        {
            "nodeSelector": {"a": "b"},
            "affinity": affinity(expression("disk", "DoesNotExist")),
        },
        {},
        NOT_CHOSEN,
    ),
    "affinity by number": (
        {"affinity": affinity(expression("cores", "Gt", "64"))},
        {"labels": {"cores": "128"}},
        "",
    ),
    "affinity to a name": ({"affinity": affinity(named("In", "node-a"))}, {}, ""),
    "affinity to another name": ({"affinity": affinity(named("In", "node-b"))}, {}, NOT_CHOSEN),
    "affinity away from a name": ({"affinity": affinity(named("NotIn", "node-a"))}, {}, NOT_CHOSEN),
}


@pytest.mark.parametrize(("pod", "node", "reason"), CASES.values(), ids=CASES)
def test_static_rules(pod: dict[str, Any], node: dict[str, Any], reason: str) -> None:
    """The node object refuses in upstream's words, and no preemption helps against that."""
    verdict = static_verdict(needs(**pod), facts(**node))
    assert verdict is (Verdict.refusal(CAUSES[reason], reason) if reason else FITS)
    assert not verdict.resolvable


def test_first_refusal_is_told() -> None:
    """Of several rules that refuse, the first in upstream's order is named."""
    pod = needs(nodeName="node-b", nodeSelector={"a": "b"})
    assert static_verdict(pod, facts(unschedulable=True, **DEDICATED)).reasons == (CORDONED,)
    assert static_verdict(pod, facts(**DEDICATED)).reasons == (OTHER_NAME,)
    assert static_verdict(needs(nodeSelector={"a": "b"}), facts(**DEDICATED)).reasons == (TAINTED,)


PODS = [needs(**pod) for pod, _, _ in CASES.values()] + [
    needs(nodeSelector={"kubernetes.io/hostname": "node-b"}),
]
NODES = [
    facts(name, **node) for _, node, _ in CASES.values() for name in ("node-a", "node-b", "node-c")
]


@given(st.lists(st.tuples(st.sampled_from(PODS), st.sampled_from(NODES)), max_size=60))
def test_cached_verdicts_are_fresh_ones(asked: list[tuple[Any, Any]]) -> None:
    """A cached verdict is what the rules would say now, whatever was asked before."""
    cache = StaticVerdicts(most=20)
    for pod, node in asked:
        assert cache.verdict(pod, node) is static_verdict(pod, node)
