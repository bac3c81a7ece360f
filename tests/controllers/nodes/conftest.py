"""Tests here may be coroutines. Each gets an event loop of its own and a bounded time."""

from __future__ import annotations

import asyncio
import inspect

import pytest

LONGEST_TEST_S = 60.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    function = pyfuncitem.obj
    if not inspect.iscoroutinefunction(function):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(function).parameters}
    asyncio.run(asyncio.wait_for(function(**arguments), LONGEST_TEST_S))
    return True
