"""Settings of every test: how many rounds a hypothesis law gets."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No deadlines: a law says what is true, not how fast, and test machines are shared. Derandomised, so that a run of the same
# code gives the same answer; the long profile looks for new examples.
_QUIET = [HealthCheck.too_slow]

settings.register_profile(
    "default", max_examples=100, deadline=None, derandomize=True, suppress_health_check=_QUIET
)
settings.register_profile(
    "long", max_examples=2_000, deadline=None, print_blob=True, suppress_health_check=_QUIET
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
