"""What a server that runs in another process says about its own health."""

from __future__ import annotations

from pathlib import Path
from typing import Final

WAIT_S: Final = 2.0
_FAILED: Final = "[-]"


def problem(url: str, authority: Path) -> str:
    """Why the server at an address is not ready, as `/readyz` says; empty if it is."""
    import ssl
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import HTTPSHandler, ProxyHandler, build_opener

    try:
        trust = ssl.create_default_context(cafile=authority)
        trust.check_hostname = False  # Whoever has the key of this authority is the server.
        opener = build_opener(ProxyHandler({}), HTTPSHandler(context=trust))
        with opener.open(f"{url}/readyz", timeout=WAIT_S):
            return ""
    except HTTPError as refusal:
        return _problems(refusal.read().decode(errors="replace"))
    except (OSError, HTTPException):
        return "it does not answer"


def _problems(verdict: str) -> str:
    """The checks that failed, as in `store failed: disk full`."""
    lines = verdict.splitlines()
    failed = [line.removeprefix(_FAILED) for line in lines if line.startswith(_FAILED)]
    return "; ".join(failed) or verdict.strip()
