"""Tests here may be coroutines: each runs on an event loop of its own. The server that they are given is left as it was."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator

import pytest

from cluster.contract.clusters import ENDING, wait_until_gone
from patience import PATIENCE_S

# A test that waits for something that never comes fails after this, instead of stopping the whole run.


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    async def run() -> None:
        async with asyncio.timeout(
            2 * PATIENCE_S
        ):  # what a test waits for fails first, and says for what
            await pyfuncitem.obj(**arguments)

    asyncio.run(run())
    return True


@pytest.fixture(scope="session", autouse=True)
def nothing_stays() -> Iterator[None]:
    """Not done before the namespaces of all cases are gone from the server of DRAYMAN_TEST_KUBECONFIG."""
    yield
    if ENDING:
        asyncio.run(wait_until_gone())
