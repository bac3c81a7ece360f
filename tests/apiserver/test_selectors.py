"""Label and field selectors: what matches, and what is refused with which words."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

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
    assert selects(text, LABELS) is matches


def selects(text: str, labels: Mapping[str, str]) -> bool:
    return Selector(parse_labels(text)).matches({"metadata": {"labels": labels}})


TERMS = (
    "{k}",
    "!{k}",
    "{k}={v}",
    "{k}!={v}",
    "{k} in ({v},1)",
    "{k} notin ({v},2)",
    "{k}>1",
    "{k}<3",
)
TERM = st.builds(
    lambda form, k, v: form.format(k=k, v=v),
    st.sampled_from(TERMS),
    st.sampled_from("abc"),
    st.sampled_from("x123"),
)


@given(
    st.lists(TERM, max_size=6), st.dictionaries(st.sampled_from("abcd"), st.sampled_from("x1234"))
)
def test_requirements_together_match_what_each_of_them_matches(
    terms: list[str], labels: dict[str, str]
) -> None:
    assert selects(",".join(terms), labels) is all(selects(term, labels) for term in terms)


class Counting(dict[str, str]):
    """Labels that count how often they are looked at."""

    looks = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.looks += 1
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.looks += 1
        return super().__contains__(key)


@pytest.mark.parametrize("form", [*TERMS, "a!={v}", "a notin ({v})", "a in (x,{v})", "a>{v}"])
def test_a_match_takes_no_longer_for_many_requirements(form: str) -> None:
    """An object with few labels is not compared with a thousand of them."""
    text = ",".join(form.format(k=f"k{number}", v=number) for number in range(1_000))
    labels = Counting(a="x")
    selects(text, labels)
    assert labels.looks <= 2


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
