"""Tests here may be coroutines, as those of the cluster package."""

from __future__ import annotations

from cluster.conftest import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]
