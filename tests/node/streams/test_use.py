"""What nodes have used, as text and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.apiserver.reaching.rates import rates
from drayman.node.streams.use import ContainerKey, NodeUse, Use, from_text, to_text

USES = st.builds(
    Use,
    st.floats(0, 1e12, allow_nan=False),
    st.integers(0, 2**50),
    st.integers(0, 2**45),
)
NAMES = st.text(
    st.characters(
        exclude_characters="\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", exclude_categories=("Cs",)
    ),
    max_size=8,
)


@given(
    st.builds(
        NodeUse,
        st.none() | USES,
        st.dictionaries(st.builds(ContainerKey, NAMES, NAMES, NAMES), USES, max_size=4),
    )
)
def test_reading_what_was_written(use: NodeUse) -> None:
    """Whatever a node says is understood, whatever its containers are called."""
    assert from_text(to_text(use)) == use


KUBELET_CONTAINER = """\
container_cpu_usage_seconds_total{container="app",namespace="ns",pod="p"} 4.710169 1633253812125
container_memory_working_set_bytes{container="app",namespace="ns",pod="p"} 2.8147712e+07 1633253812125
"""
KUBELET = f"""\
# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in core-seconds
# TYPE container_cpu_usage_seconds_total counter
{KUBELET_CONTAINER}\
container_memory_working_set_bytes{{container="half",namespace="ns",pod="p"}} 1 1633253812125
container_start_time_seconds{{container="app",namespace="ns",pod="p"}} 1.63325e+09
node_cpu_usage_seconds_total 357.35491 1633253809720
node_memory_working_set_bytes 1.617674e+09 1633253809720
pod_cpu_usage_seconds_total{{namespace="ns",pod="p"}} 4.67812 1633253803935
scrape_error 0
"""


def test_reading_a_kubelet() -> None:
    """A page of a kubelet is understood; what it says of a container by half is not taken."""
    assert from_text(KUBELET) == NodeUse(
        Use(357.35491, 1_617_674_000, 1633253809720),
        {ContainerKey("ns", "p", "app"): Use(4.710169, 28_147_712, 1633253812125)},
    )


def test_pods_are_the_sum_of_their_containers() -> None:
    """Scrapers of the page also find pods, each once."""
    use = NodeUse(
        None,
        {ContainerKey("n", "p", name): Use(1.5, 10, 7) for name in ("a", "b")},
    )
    lines = to_text(use).splitlines()
    assert 'pod_cpu_usage_seconds_total{namespace="n",pod="p"} 3.0 7' in lines
    assert 'pod_memory_working_set_bytes{namespace="n",pod="p"} 20 7' in lines


@pytest.mark.parametrize(
    "line",
    [
        "node_cpu_usage_seconds_total 1e999 7",
        "node_cpu_usage_seconds_total 1.2.3 7",
        "node_cpu_usage_seconds_total -1 7",
        "node_cpu_usage_seconds_total 1e300 7",
        "node_cpu_usage_seconds_total 1 253402300800000",
        f"node_cpu_usage_seconds_total 1 {'9' * 5000}",
        "node_cpu_usage_seconds_total e 7",
    ],
)
def test_numbers_that_cannot_be(line: str) -> None:
    """What a node says wrongly is passed over; the rest of its page counts."""
    found = from_text(f"{line}\nnode_memory_working_set_bytes 1 7\n{KUBELET_CONTAINER}")
    assert found.node is None
    assert list(found.containers) == [ContainerKey("ns", "p", "app")]


@given(st.text("0123456789.eE+-", min_size=1), st.text("0123456789"), st.text('a="\\{},'))
def test_any_page_is_read(value: str, at_ms: str, labels: str) -> None:
    """Whatever a node sends is understood or passed over, and rates can be worked out from it."""
    names = ("node_cpu_usage_seconds_total", "node_memory_working_set_bytes")
    found = from_text("".join(f"{name}{{{labels}}} {value} {at_ms}\n" for name in names))
    rates(NodeUse(Use(0.0, 0, 0), {}), found)
