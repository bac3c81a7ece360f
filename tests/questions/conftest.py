"""Tests here may be coroutines, and have the cluster that explanations are tested on."""

from __future__ import annotations

from cli.explain.conftest import full, kubectl, person, server
from cluster.conftest import pytest_pyfunc_call

__all__ = ["full", "kubectl", "person", "pytest_pyfunc_call", "server"]
