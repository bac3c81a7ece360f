"""Recorded answers of a real API server, replayed against this one.

Every fourth vector, to keep the run short; the whole of it is for `replay.py` itself. Skipped where the recordings are not there.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.http import Listener, RunningServer, start
from drayman.cluster.embedded.store import Store

RECORDINGS = Path(__file__).parents[3] / "shared" / "conformance" / "api"
SHARE = 4
REQUIRED = {"outcome", "fields", "bodies"}

DIFFERENT = {
    "views/table-claim": "claims show their node and devices in wide tables",
    "NetworkPolicy/": "not served",
    "ValidatingAdmissionPolicy/": "not served",
    "ValidatingWebhookConfiguration/": "not served",
    "pod/quota-exceeded": "quota is not enforced by admission",
    "slice/v1/create/attribute-": "an empty list counts as an absent one",
    "slice/v1beta1/create/attribute-": "an empty list counts as an absent one",
    "slice/v1/create/shared-counters-": "an empty list counts as an absent one",
    "slice/v1beta1/create/shared-counters-": "an empty list counts as an absent one",
    "slice/v1beta2/create/shared-counters-": "an empty list counts as an absent one",
}
"""Beginnings of the names of vectors that are answered differently, and why."""


@pytest.fixture(scope="module")
def replay() -> ModuleType:
    path = RECORDINGS / "replay.py"
    if not path.exists():
        pytest.skip(f"no recordings at {RECORDINGS}")
    spec = importlib.util.spec_from_file_location("recorded_replay", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@contextmanager
def serving() -> Iterator[RunningServer]:
    """A server over a store in memory, in a thread of its own, as the replaying client blocks."""
    loop = asyncio.new_event_loop()
    store = Store.open(None)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        server = make_server(store)
        running = asyncio.run_coroutine_threadsafe(start(server, Listener()), loop).result()
        yield running
        asyncio.run_coroutine_threadsafe(running.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        store.close()


@contextmanager
def connected(replay: ModuleType, running: RunningServer) -> Iterator[Any]:
    client = replay.Client(replay.Target("http", running.host, running.port, "", None, 60.0))
    try:
        yield client
    finally:
        client._connection.close()


def differing(replay: ModuleType, client: Any, vector: Any) -> list[str]:
    """What a vector requires and does not find."""
    observed = replay.run_vector(vector, client)
    found = [m for m in replay.compare(vector, observed) if m.figure in REQUIRED]
    return [
        line
        for m in found
        for line in [
            f"{m.vector} step {m.step} {m.figure}",
            *replay.differences(m.expected, m.actual),
        ]
    ]


@pytest.mark.parametrize("name", ["validation", "defaults", "scenarios"])
def test_the_server_answers_as_a_real_one(replay: ModuleType, name: str) -> None:
    """In status, reason, fields and bodies, but for the vectors whose difference is known and meant."""
    vectors = list(replay.load(RECORDINGS / f"{name}.jsonl"))[::SHARE]
    wrong: list[str] = []
    with serving() as running, connected(replay, running) as client:
        for vector in vectors:
            if vector.name.startswith(tuple(DIFFERENT)):
                continue
            # Owners of fields are ordered by whole seconds, so a vector that runs over the end of one may differ once.
            if differing(replay, client, vector):
                wrong += differing(replay, client, vector)
    assert not wrong, "\n".join(wrong)
