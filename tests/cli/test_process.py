"""What commands do to their process, seen from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.certificates import Authority

_COMMAND = """
import os
from drayman.cli import process
if {own}:
    process.own()
process.give_way()
print(os.getpriority(os.PRIO_PROCESS, 0), end="")
process.keep(object())
class Last:
    def __del__(self):
        print(" taken apart", end="", flush=True)
last = Last()
process.leave(3)
"""


@pytest.mark.parametrize(("own", "end"), [(True, ""), (False, " taken apart")])
def test_a_process_of_ones_own_gives_way_and_ends_at_once(own: bool, end: str) -> None:
    """What was printed is out and the status is told; nothing is taken apart. A process of somebody else's is left as it is."""
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND.format(own=own)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    niceness = 10 if own else os.getpriority(os.PRIO_PROCESS, 0)
    assert done.stdout == f"{niceness}{end}"


_TRUSTING = """
import os
from drayman.cli import process
if {own}:
    process.own()
with process.without_system_certificates():
    import aiohttp.connector
from drayman.cluster.kube.connection import Trust, tls_context
library, ours = aiohttp.connector._SSL_CONTEXT_VERIFIED, tls_context(Trust(), None)
print(library.cert_store_stats()["x509_ca"], ours.cert_store_stats()["x509_ca"])
print(os.environ["SSL_CERT_FILE"], "SSL_CERT_DIR" in os.environ)
"""


@pytest.mark.parametrize(("own", "read"), [(True, 0), (False, 1)])
def test_the_certificates_of_the_system_are_read_by_who_needs_them(
    own: bool, read: int, tmp_path: Path
) -> None:
    """Not by the library for nobody, unless the process is somebody else's; and always for a connection that trusts the system."""
    trusted = tmp_path / "ca.crt"
    trusted.write_bytes(Authority().pem())
    environment = {k: v for k, v in os.environ.items() if k != "SSL_CERT_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", _TRUSTING.format(own=own)],
        capture_output=True,
        text=True,
        check=False,
        env={**environment, "SSL_CERT_FILE": str(trusted)},
    )
    assert done.stdout == f"{read} 1\n{trusted} False\n", done.stderr
