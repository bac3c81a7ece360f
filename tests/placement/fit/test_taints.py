"""Which tolerations are for which taints."""

from __future__ import annotations

import pytest

from drayman.api.core import Taint, Toleration
from drayman.placement.fit.taints import tolerates

TOLERATIONS = {
    "the same key and value": (("k", "Equal", "v", ""), True),
    "another value": (("k", "Equal", "w", ""), False),
    "any value": (("k", "Exists", "", ""), True),
    "everything": (("", "Exists", "", ""), True),
    "another effect": (("k", "Exists", "", "NoExecute"), False),
    "an operator nobody knows": (("k", "Like", "v", ""), False),
}


@pytest.mark.parametrize("case", TOLERATIONS)
def test_what_tolerates_a_taint(case: str) -> None:
    """Key, operator, value and effect, of the taint k=v:NoSchedule."""
    (key, operator, value, effect), expected = TOLERATIONS[case]
    toleration = Toleration(key=key, operator=operator, value=value, effect=effect)
    assert tolerates(toleration, Taint(key="k", value="v", effect="NoSchedule")) is expected
