"""What another configuration would change for the workloads of a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.questions.errors import QuestionError
from drayman.questions.quota_changes import changes
from explain.hall import Hall

HEAD = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}


def configured(**more: Any) -> dict[str, Any]:
    return {**HEAD, **more}


def doubled() -> dict[str, Any]:
    rule = {"input": "cpu", "strategy": "Replace", "outputs": {"cpu": "2"}}
    return configured(resources={"transformations": [rule]})


def hall() -> Hall:
    found = Hall().flavor("h100").queue("a", h100=8)
    found.configuration = configured()
    found.workload("holds", "a", 6, has="h100").workload("waits", "a", 4, count=2)
    return found.workload("asks for nothing", "a", 0)


def test_prices_that_change_are_counted_and_named() -> None:
    """With what they are and would be, for those that wait and for those that hold quota."""
    answer = changes(hall().world(), "new.yaml", doubled())
    assert (answer.workloads, answer.pending, answer.admitted) == (3, 1, 1)
    assert [
        (each.name, each.state, each.now.resources, each.then.resources) for each in answer.changes
    ] == [
        ("holds", "admitted", {"cpu": "6"}, {"cpu": "12"}),
        ("waits", "pending", {"cpu": "8"}, {"cpu": "16"}),
    ]
    assert answer.fields == ("resources.transformations",)


def test_a_configuration_that_says_the_same_changes_nothing() -> None:
    """Whichever version it is in."""
    answer = changes(hall().world(), "new.yaml", {**HEAD, "apiVersion": HEAD["apiVersion"]})
    assert answer.is_empty


def test_what_does_not_concern_prices_is_named_by_its_field() -> None:
    """So that the answer is not taken for `nothing happens`."""
    answer = changes(hall().world(), "new.yaml", configured(fairSharing={}))
    assert (answer.changes, answer.fields) == ((), ("fairSharing",))


def test_a_configuration_that_would_be_refused_is_refused_here() -> None:
    """With the file and the field."""
    wrong = configured(resources={"quotaCheckStrategy": "Sometimes"})
    with pytest.raises(QuestionError, match=r"new\.yaml: resources\.quotaCheckStrategy"):
        changes(hall().world(), "new.yaml", wrong)
