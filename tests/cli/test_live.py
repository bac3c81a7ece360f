"""The live status of `drayman up`: right numbers in 80 columns."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from drayman.apiserver.instance import Folder, Options, start
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cli.cluster.live import LiveStatus, Rate, uptime
from drayman.cli.cluster.tallies import (
    Tally,
    claim_allocation,
    node_readiness,
    pod_phase,
    slice_devices,
)
from drayman.cluster.backend import Target
from drayman.cluster.embedded import Delete, Key, Put, Retention, Store
from drayman.cluster.options import WriteOptions

CLAIM_SPEC = {
    "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}
}
PHASES = ["Pending", "Running", "Succeeded", None]


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([*PHASES, "gone"])), max_size=40),
    st.integers(1, 50),
    st.integers(1, 7),
)
def test_a_tally_is_what_a_count_would_be(
    steps: list[tuple[str, str | None]], retained: int, every: int
) -> None:
    """After any history, looked at as often as you like, and also where history was too short to follow."""

    async def scenario() -> None:
        with Store.open(None, retention=Retention(changes=retained)) as store:
            tally = Tally(store, "pods", pod_phase)
            there: dict[str, str] = {}
            for number, (name, phase) in enumerate(steps):
                key = Key("pods", "ns", name)
                if phase != "gone":
                    there[name] = phase or "Unknown"
                    data = encoded({"status": {"phase": phase} if phase else {}})
                    await store.write([Put(key, lambda _, data=data: data)])
                elif there.pop(name, None) is not None:
                    await store.write([Delete(key, lambda _: b"{}")])
                if number % every == 0:
                    assert tally.refresh() == counts(there)
            assert tally.refresh() == counts(there)
            assert tally.total == len(there)

    asyncio.run(scenario())


def counts(there: dict[str, str]) -> dict[str, int]:
    phases = list(there.values())
    return {phase: phases.count(phase) for phase in set(phases)}


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (node_readiness, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, 1),
        (node_readiness, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, 0),
        (node_readiness, {}, 0),
        (claim_allocation, {"spec": CLAIM_SPEC, "status": {"allocation": {"devices": {}}}}, 1),
        (claim_allocation, {"spec": CLAIM_SPEC, "status": {}}, 0),
        (claim_allocation, {"spec": CLAIM_SPEC}, 0),
        (slice_devices, {"spec": {"devices": [{"name": "a"}, {"name": "b"}]}}, 2),
        (slice_devices, {"spec": {}}, 0),
        (pod_phase, {"spec": {"resourceClaims": []}, "status": {"phase": "Running"}}, 1),
        (pod_phase, {"spec": {}}, 1),
    ],
)
def test_what_is_read_from_objects(read: Any, value: Any, expected: int) -> None:
    """Readiness of nodes, allocation of claims, devices of slices, phases of pods, whatever else the objects hold."""
    assert sum(read(encoded(value)).values()) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0:00:00"), (61.9, "0:01:01"), (86_399, "23:59:59"), (2 * 86_400 + 5, "2 d 0:00:05")],
)
def test_uptime(seconds: float, expected: str) -> None:
    """As clocks show it."""
    assert uptime(seconds) == expected


def test_a_rate_is_about_the_time_since_the_last_look() -> None:
    """And no time at all gives no rate."""
    times = iter([0.0, 2.0, 2.0, 3.0])
    rate = Rate(100, clock=lambda: next(times))
    assert [rate.per_second(n) for n in (110, 200, 201)] == [5.0, 0.0, 1.0]


def test_what_is_to_be_typed_can_be_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster in the usual place is found without its path, which may be too long for a line."""
    folder = tmp_path / ("long-name-" * 10)
    monkeypatch.setenv("DRAYMAN_DATA_DIR", str(folder))

    async def scenario() -> list[tuple[str, str]]:
        instance = await start(Options(Folder(folder), control_plane=None))
        try:
            with closing(LiveStatus(instance)) as status:
                return status.lines()
        finally:
            await instance.stop()

    assert ("try", "export KUBECONFIG=$(drayman kubeconfig --path)") in asyncio.run(scenario())


def test_the_status_fits_a_terminal_of_80_columns(tmp_path: Path) -> None:
    """Also with long paths and large numbers; closing it lets go of what it follows."""

    async def scenario() -> str:
        folder = Folder(tmp_path / ("long-name-" * 10))
        instance = await start(Options(folder, control_plane=None))
        try:
            backend = ServerBackend(instance.server.core)
            body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
            await backend.create(Target("", "v1", "nodes"), body, WriteOptions())
            before = instance.store.watchers
            status = LiveStatus(instance)
            drawn = StringIO()
            Console(file=drawn, width=80).print(status.render())
            status.close()
            assert instance.store.watchers == before
            assert instance.server.observers == []
            return drawn.getvalue()
        finally:
            await instance.stop()

    text = asyncio.run(scenario())
    assert max(map(len, text.splitlines())) <= 80
    assert re.search(r"^nodes +1 *$", text, re.MULTILINE)
    assert re.search(r"^namespaces +4 *$", text, re.MULTILINE)
    assert "".join(text.split()).count("long-name-" * 10) == 3
