"""Label selectors and node selectors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api import codec, labels, nodeselector
from drayman.api.core import Node, NodeSelector
from drayman.api.errors import SelectorError
from drayman.api.meta import LabelSelector, ObjectMeta

NODE = Node(
    metadata=ObjectMeta(name="node-1", labels={"zone": "a", "size": "12", "empty": "", "word": "x"})
)

REQUIREMENTS = {
    "in": ("zone", "In", ["b", "a"], True),
    "not in it": ("zone", "In", ["b"], False),
    "in without the label": ("none", "In", ["a"], False),
    "notin": ("zone", "NotIn", ["b"], True),
    "notin hit": ("zone", "NotIn", ["a"], False),
    "notin without the label": ("none", "NotIn", ["a"], True),
    "exists": ("empty", "Exists", [], True),
    "exists not": ("none", "Exists", [], False),
    "does not exist": ("none", "DoesNotExist", [], True),
    "does exist": ("zone", "DoesNotExist", [], False),
    "greater": ("size", "Gt", ["11"], True),
    "not greater": ("size", "Gt", ["12"], False),
    "less": ("size", "Lt", ["13"], True),
    "not less": ("size", "Lt", ["12"], False),
    "compared without the label": ("none", "Gt", ["1"], False),
    "compared with a word": ("word", "Lt", ["1"], False),
}


def node_selector(*terms: dict[str, Any]) -> NodeSelector:
    return codec.convert(NodeSelector, {"nodeSelectorTerms": list(terms)})


def expressions(*requirements: tuple[str, str, list[str]]) -> list[dict[str, Any]]:
    return [
        {"key": key, "operator": operator, "values": values}
        for key, operator, values in requirements
    ]


@pytest.mark.parametrize(
    ("key", "operator", "values", "wanted"), REQUIREMENTS.values(), ids=REQUIREMENTS
)
def test_requirement(key: str, operator: str, values: list[str], wanted: bool) -> None:
    """Each operator on a label, present or not."""
    selector = node_selector({"matchExpressions": expressions((key, operator, values))})
    assert nodeselector.matches(selector, NODE) is wanted


TERMS: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "no terms": ([], False),
    "an empty term": ([{}], False),
    "one of two": (
        [
            {"matchExpressions": expressions(("zone", "In", ["b"]))},
            {"matchExpressions": expressions(("zone", "In", ["a"]))},
        ],
        True,
    ),
    "both in one": (
        [{"matchExpressions": expressions(("zone", "In", ["a"]), ("size", "Gt", ["20"]))}],
        False,
    ),
    "name": ([{"matchFields": expressions(("metadata.name", "In", ["node-1"]))}], True),
    "other name": ([{"matchFields": expressions(("metadata.name", "In", ["node-2"]))}], False),
    "not the name": ([{"matchFields": expressions(("metadata.name", "NotIn", ["node-2"]))}], True),
    "unknown field": ([{"matchFields": expressions(("spec.x", "In", ["node-1"]))}], False),
    "name and labels": (
        [
            {
                "matchFields": expressions(("metadata.name", "In", ["node-1"])),
                "matchExpressions": expressions(("zone", "In", ["b"])),
            }
        ],
        False,
    ),
}


@pytest.mark.parametrize(("terms", "wanted"), TERMS.values(), ids=TERMS)
def test_terms(terms: list[dict[str, Any]], wanted: bool) -> None:
    """Terms are alternatives, what is in one must all hold, and an empty one holds for no node."""
    assert nodeselector.matches(node_selector(*terms), NODE) is wanted


def test_fields_do_not_count_without_a_name() -> None:
    """A node that has no name yet is judged by its labels only."""
    selector = node_selector({"matchFields": expressions(("metadata.name", "In", ["node-1"]))})
    assert nodeselector.matches(selector, Node())


UNPARSABLE: dict[str, dict[str, Any]] = {
    "operator": {"matchExpressions": expressions(("zone", "Near", ["a"]))},
    "in without values": {"matchExpressions": expressions(("zone", "In", []))},
    "exists with values": {"matchExpressions": expressions(("zone", "Exists", ["a"]))},
    "greater than two": {"matchExpressions": expressions(("size", "Gt", ["1", "2"]))},
    "greater than a word": {"matchExpressions": expressions(("size", "Gt", ["x"]))},
    "greater than 64 bits": {"matchExpressions": expressions(("size", "Gt", [str(2**63)]))},
    "bad key": {"matchExpressions": expressions(("a b", "Exists", []))},
    "bad value": {"matchExpressions": expressions(("zone", "In", ["a b"]))},
    "field operator": {"matchFields": expressions(("metadata.name", "Exists", []))},
    "two names": {"matchFields": expressions(("metadata.name", "In", ["a", "b"]))},
}


@pytest.mark.parametrize("term", UNPARSABLE.values(), ids=UNPARSABLE)
def test_unparsable(term: dict[str, Any]) -> None:
    """A selector that cannot be understood is an error, even beside a term that matches."""
    matching = {"matchExpressions": expressions(("zone", "Exists", []))}
    with pytest.raises(SelectorError):
        nodeselector.matches(node_selector(matching, term), NODE)


LABEL_SELECTORS: dict[str, tuple[dict[str, Any] | None, bool]] = {
    "absent": (None, False),
    "empty": ({}, True),
    "labels": ({"matchLabels": {"zone": "a", "word": "x"}}, True),
    "one label differs": ({"matchLabels": {"zone": "a", "word": "y"}}, False),
    "expressions": ({"matchExpressions": expressions(("zone", "NotIn", ["b"]))}, True),
    "both": (
        {
            "matchLabels": {"zone": "a"},
            "matchExpressions": expressions(("zone", "DoesNotExist", [])),
        },
        False,
    ),
}


@pytest.mark.parametrize(("value", "wanted"), LABEL_SELECTORS.values(), ids=LABEL_SELECTORS)
def test_label_selector(value: dict[str, Any] | None, wanted: bool) -> None:
    """Labels and expressions must all hold; no selector selects nothing, an empty one everything."""
    selector = None if value is None else codec.convert(LabelSelector, value)
    assert labels.matches(selector, NODE.metadata.labels) is wanted


def test_label_selectors_do_not_compare() -> None:
    """Gt and Lt are for nodes only."""
    selector = codec.convert(
        LabelSelector, {"matchExpressions": expressions(("size", "Gt", ["1"]))}
    )
    with pytest.raises(SelectorError):
        labels.matches(selector, {})


keys = st.sampled_from(["a", "b"])
label_sets = st.dictionaries(keys, st.sampled_from(["1", "2", ""]))


@given(label_sets, keys, st.lists(st.sampled_from(["1", "2"]), min_size=1, max_size=2))
def test_opposites(have: dict[str, str], key: str, values: list[str]) -> None:
    """NotIn is the opposite of In, DoesNotExist of Exists."""
    for one, other, given_values in (
        ("In", "NotIn", tuple(values)),
        ("Exists", "DoesNotExist", ()),
    ):
        meets = labels.parse_requirement(key, one, given_values)
        fails = labels.parse_requirement(key, other, given_values)
        assert meets(have) is not fails(have)
