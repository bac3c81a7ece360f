"""Settings of every test: how many rounds a hypothesis law gets, and which signals reach the processes under test."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

# A shell that runs the tests in the background has them ignore interrupts, and every process that a test starts would too.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(
            _number, signal.default_int_handler if _number is signal.SIGINT else signal.SIG_DFL
        )

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
