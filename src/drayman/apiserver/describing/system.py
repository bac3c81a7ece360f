"""The paths that are about the server rather than about objects: health, version, and the list of paths."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from drayman import __version__
from drayman.apiserver.protocol.exchange import TEXT_TYPE, Request, Response
from drayman.apiserver.served.encoding import encode_pretty

KUBERNETES: Final = "1.36"
"""The version whose API is served. Clients choose features by it."""
GIT_VERSION: Final = f"v{KUBERNETES}.4"
READY_PATH: Final = "readyz"
HEALTH_PATHS: Final = ("healthz", "livez", READY_PATH)
NO_SNIFF: Final = {"X-Content-Type-Options": "nosniff"}

Check = Callable[[], str | None]
"""Returns what is wrong, or None."""


def version_info() -> Response:
    """`/version`. Clients parse gitVersion; the build metadata, which they ignore, says that this is Drayman."""
    major, minor = KUBERNETES.split(".")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    info = {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"{GIT_VERSION}+drayman.{__version__}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": f"python{platform.python_version()}",
        "platform": f"{platform.system().lower()}/{machine}",
    }
    return Response(200, encode_pretty(info))


@dataclass(slots=True)
class Health:
    """Named checks: those of every health path, and those of `/readyz` alone."""

    checks: Mapping[str, Check] = field(default_factory=dict)
    readiness: Mapping[str, Check] = field(default_factory=dict)

    def at(self, path: str) -> Mapping[str, Check]:
        """The checks of one path."""
        return {**self.checks, **self.readiness} if path == READY_PATH else self.checks

    def answer(self, request: Request, path: str, name: str) -> Response | None:
        """The answer for a health path, or for one check below it; None if there is no such check."""
        checks = self.at(path)
        if name:
            if name not in checks:
                return None
            return _verdict(path, {name: checks[name]()}, verbose=False)
        excluded = request.query.all("exclude")
        found = {n: check() for n, check in checks.items() if n not in excluded}
        return _verdict(path, found, verbose=bool(request.query.flag("verbose")))


def _verdict(path: str, problems: Mapping[str, str | None], *, verbose: bool) -> Response:
    failed = any(problems.values())
    if not failed and not verbose:
        return Response(200, b"ok", TEXT_TYPE, dict(NO_SNIFF))
    lines = [
        f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok"
        for name, problem in problems.items()
    ]
    lines.append(f"{path} check {'failed' if failed else 'passed'}")
    body = ("\n".join(lines) + "\n").encode()
    return Response(500 if failed else 200, body, TEXT_TYPE, dict(NO_SNIFF))


def page_not_found() -> Response:
    """The answer for an unknown path: no Status, as no API is involved."""
    return Response(404, b"404 page not found\n", TEXT_TYPE, dict(NO_SNIFF))
