"""Tests here may be coroutines."""

from __future__ import annotations

from cluster.conftest import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]
