"""Prometheus metrics, named as in Kubernetes."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from drayman.apiserver.protocol.access import Attributes
from drayman.apiserver.protocol.exchange import Response

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_VERBS: Final = frozenset(
    "create delete deletecollection get list patch update watch put post head options".split()
)
"""Verbs and methods that are counted by name. Clients can invent others, and every name uses memory permanently."""


CONNECTED: Final = frozenset(("attach", "exec", "log", "portforward"))
"""Parts of pods whose requests take as long as their clients like."""

MOST_SERIES: Final = 10_000
"""So many combinations of labels and codes are counted apart. Definitions of custom resources come and go, and each brings its own."""


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("verb", "group", "version", "resource", "subresource")
        self._requests = Counter(
            "apiserver_request_total",
            "Requests by verb, resource and response code.",
            (*labels, "code"),
            registry=self.registry,
        )
        self._duration = Histogram(
            "apiserver_request_duration_seconds",
            "How long requests took; watches, logs and sessions in containers are not counted.",
            labels,
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._known: dict[tuple[tuple[str, ...], int], tuple[Counter, Histogram]] = {}
        self.audit_errors = Counter(
            "apiserver_audit_error_total",
            "Audit events that could not be written.",
            registry=self.registry,
        )
        open_now = Gauge(
            "apiserver_longrunning_requests",
            "Watches, logs that are being sent, and sessions in containers.",
            ("verb",),
            registry=self.registry,
        )
        self.watches = open_now.labels("WATCH")
        self.connected = open_now.labels("CONNECT")

    def observe(self, attributes: Attributes, code: int, seconds: float) -> None:
        """Count one finished request."""
        verb = attributes.verb if attributes.verb in _VERBS else "other"
        labels = (
            verb.upper(),
            attributes.group,
            attributes.version,
            attributes.resource,
            attributes.subresource,
        )
        counter, duration = self._children(labels, code)
        counter.inc()
        if attributes.verb != "watch" and attributes.subresource not in CONNECTED:
            duration.observe(seconds)

    def _children(self, labels: tuple[str, ...], code: int) -> tuple[Counter, Histogram]:
        """The counter and the histogram of some labels, found once: looking them up takes longer than counting."""
        found = self._known.get((labels, code))
        if found is None:
            if len(self._known) >= MOST_SERIES:
                labels = (labels[0], "", "", "other", "")
            counter = self._requests.labels(*labels, str(code))
            found = self._known[labels, code] = (counter, self._duration.labels(*labels))
        return found

    def answer(self) -> Response:
        return Response(200, generate_latest(self.registry), CONTENT_TYPE)
