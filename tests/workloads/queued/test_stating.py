"""What labels and annotations of queued work may say."""

from __future__ import annotations

import pytest

from drayman.workloads.queued.stating import misstated

LONGEST = "kueue.x-k8s.io/max-exec-time-seconds"
LEAST = "kueue.x-k8s.io/job-min-parallelism"
FOLLOWS = "kueue.x-k8s.io/job-completions-equal-parallelism"
COUNT = "must be a whole number, 1 or more"


@pytest.mark.parametrize(
    ("part", "name", "value", "why"),
    [
        ("labels", LONGEST, "60", ""),
        ("labels", LONGEST, "1h", COUNT),
        ("labels", LONGEST, "0", COUNT),
        ("labels", LONGEST, str(2**31), COUNT),
        ("annotations", LEAST, "2", ""),
        ("annotations", LEAST, "two", COUNT),
        ("annotations", LEAST, "-1", COUNT),
        ("annotations", FOLLOWS, "true", ""),
        ("annotations", FOLLOWS, "yes", "must be true or false"),
    ],
)
def test_what_cannot_be_acted_on_is_refused(part: str, name: str, value: str, why: str) -> None:
    """With the field and the value, unless the object said so before."""
    obj = {"metadata": {part: {name: value}}}
    found = [(each.path, each.value, each.detail) for each in misstated(obj, None)]
    assert found == ([(f"metadata.{part}[{name}]", value, why)] if why else [])
    assert not list(misstated(obj, obj))
