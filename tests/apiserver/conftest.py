"""Tests here may be coroutines, as those of the cluster package."""

from __future__ import annotations

import sys
from pathlib import Path

from cluster.conftest import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]

sys.path.insert(0, str(Path(__file__).parent))
