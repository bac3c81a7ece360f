"""What the package offers by its own name."""

from __future__ import annotations

import subprocess
import sys

import pytest

import drayman.cluster


def test_every_name_is_there() -> None:
    """Each exported name leads to something that has that name."""
    for name in drayman.cluster.__all__:
        assert getattr(drayman.cluster, name).__name__ == name
    with pytest.raises(AttributeError):
        _ = drayman.cluster.nothing


def test_the_package_alone_brings_no_http_client() -> None:
    """Whoever uses the store does not pay for aiohttp."""
    code = "import sys, drayman.cluster; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
