"""What a server that runs in another process says about its own health."""

from __future__ import annotations

from pathlib import Path
from typing import Final

WAIT_S: Final = 2.0
_FAILED: Final = "[-]"


def problem(url: str, authority: Path) -> str:
    """Why the server at an address is not ready, as `/readyz` says; empty if it is."""
    import ssl
    from contextlib import closing
    from http.client import HTTPException, HTTPSConnection
    from urllib.parse import urlsplit

    address = urlsplit(url)
    try:
        trust = ssl.create_default_context(cafile=authority)
        trust.check_hostname = False  # The authority signs for this server only.
        with closing(
            HTTPSConnection(address.hostname or "", address.port, timeout=WAIT_S, context=trust)
        ) as connection:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            verdict = answer.read().decode(errors="replace")
    except (OSError, HTTPException):
        return "it does not answer"
    return "" if answer.status == 200 else _problems(verdict)


def _problems(verdict: str) -> str:
    """The checks that failed, as in `store failed: disk full`."""
    lines = verdict.splitlines()
    failed = [line.removeprefix(_FAILED) for line in lines if line.startswith(_FAILED)]
    return "; ".join(failed) or verdict.strip()
