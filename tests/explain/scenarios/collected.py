"""The scenarios of all modules."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from explain.scenarios.telling import Scenario

MODULES = sorted(
    path.stem
    for path in Path(__file__).parent.glob("test_*.py")
    if not path.stem.startswith("test_all")
)
SCENARIOS: tuple[Scenario, ...] = tuple(
    scenario
    for module in MODULES
    for scenario in import_module(f"explain.scenarios.{module}").SCENARIOS
)
