"""A name that does not exist is answered with those that may have been meant."""

from __future__ import annotations

import pytest

from drayman.api.near_names import did_you_mean

NODES = ("dgx-h100-0", "dgx-h100-1", "dgx-h100-mig-0", "example-shared-0")


@pytest.mark.parametrize(
    ("name", "end"),
    [
        pytest.param("dgx", "; did you mean dgx-h100-0 or dgx-h100-1 or dgx-h100-mig-0?", id="beginning"),
        pytest.param("dgx-h100-m", "; did you mean dgx-h100-mig-0 or dgx-h100-1 or dgx-h100-0?", id="beginning first"),
        pytest.param("exmaple-shared-0", "; did you mean example-shared-0?", id="letters swapped"),
        pytest.param("dg", "", id="too short to tell"),
        pytest.param("nothing", "", id="nothing like it"),
    ],
)  # fmt: skip
def test_the_nearest_names(name: str, end: str) -> None:
    """Those that begin with it in their order, then those that differ least; three at most."""
    assert did_you_mean(name, NODES) == end


def test_where_all_names_are_found() -> None:
    """It is said whether or not a name is near."""
    assert did_you_mean("dgx-h100-mig", NODES, "`list`").endswith("? `list` lists them")
    assert did_you_mean("nothing", NODES, "`list`") == "; `list` lists them"
