"""What control groups this machine has for tests."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from drayman.node.agent.limiting import NodeLimits
from drayman.node.cgroups.finding import mounts_of

_LIMITS = NodeLimits.here()
_LIMITS.leave()

needs_limits = pytest.mark.skipif(
    bool(_LIMITS.why_not), reason=f"no limits here: {_LIMITS.why_not}"
)


def writable_hierarchies() -> list[Path]:
    """A folder for groups in one hierarchy of each version, as far as there is one that may be written to."""
    found: dict[str, Path] = {}
    for mount in mounts_of(Path("/proc/self/mountinfo").read_text()):
        # Version 1 with `pids` alone, because groups of other controllers want to be set up first.
        if (mount.kind == "cgroup2" or "pids" in mount.options) and os.access(mount.point, os.W_OK):
            found.setdefault(mount.kind, Path(mount.point, f"test-{secrets.token_hex(4)}"))
    return list(found.values())
