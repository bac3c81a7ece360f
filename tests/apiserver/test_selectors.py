"""Label and field selectors: what matches, and what is refused with which words."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from building import resources
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.requests.selectors import Selector, parse_fields, parse_labels

LABELS = {"a": "x", "b": "2", "example.com/c": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("a=x", True),
        ("a==x", True),
        ("a = x", True),
        ("a=y", False),
        ("a!=x", False),
        ("zz!=x", True),
        ("a", True),
        ("!a", False),
        ("!zz", True),
        ("a in (x,y)", True),
        ("a notin (x,y)", False),
        ("zz notin (x)", True),
        ("zz in (x)", False),
        ("example.com/c in ()", True),
        ("example.com/c=", True),
        ("b>1", True),
        ("b<2", False),
        ("a>1", False),
        ("a=x,b=2", True),
        ("a=x,b=3", False),
        ("in in (x)", False),
    ],
)
def test_a_label_selector_matches_what_it_says(text: str, matches: bool) -> None:
    """Requirements are joined by and; an absent label is unequal to everything."""
    requirements = parse_labels(text)
    assert all(requirement.matches(LABELS) for requirement in requirements) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("g===", "unable to parse requirement: found '=', expected: identifier"),
        ("g=x,,n=b", "found ',', expected: identifier after ','"),
        ("n in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("n in a", "unable to parse requirement: found 'a' expected: '('"),
        ("(", "found '(', expected: !, identifier, or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=x b", "found 'b', expected: ',' or 'end of string'"),
    ],
)
def test_a_label_selector_that_cannot_be_read_is_a_400(text: str, message: str) -> None:
    """The words are those of Kubernetes."""
    with pytest.raises(StatusError) as caught:
        parse_labels(text)
    assert (caught.value.code, caught.value.message) == (400, message)


@given(st.text(alphabet="ab=!<>(), in", max_size=20))
def test_any_text_is_either_a_selector_or_a_400(text: str) -> None:
    """No text makes the parser fail in another way."""
    outcome = 400
    with suppress(StatusError):
        outcome = len(parse_labels(text))
    assert outcome <= text.count(",") + 1 or outcome == 400


POD = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"nodeName": "node"}}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("metadata.name=p", True),
        ("metadata.name!=p", False),
        ("metadata.name=p,metadata.namespace==n", True),
        ("spec.nodeName=", False),
        ("spec.nodeName!=", True),
        ("spec.nodeName=node", True),
    ],
)
def test_a_field_selector_matches_what_it_says(text: str, matches: bool) -> None:
    """Values are compared as texts; an empty one is the value of an absent field."""
    pods = next(r for r in resources() if r.plural == "pods")
    selector = Selector(fields=parse_fields(text, pods, "v1"))
    assert selector.matches(POD) is matches


@pytest.mark.parametrize(
    ("plural", "text", "message"),
    [
        (
            "pods",
            "metadata.name",
            "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
        ),
        ("pods", "spec.x=1", "field label not supported: spec.x"),
        (
            "configmaps",
            "data=1",
            '"data" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
def test_a_field_that_is_not_selectable_is_a_400(plural: str, text: str, message: str) -> None:
    """A typo must not select nothing in silence."""
    resource = next(r for r in resources() if r.plural == plural)
    with pytest.raises(StatusError) as caught:
        parse_fields(text, resource, "v1")
    assert (caught.value.code, caught.value.message) == (400, message)
