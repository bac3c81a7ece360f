"""What a driver counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_BUCKETS: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 45)


class Metrics:
    """The metrics of one driver, in a registry of their own."""

    def __init__(self, driver: str) -> None:
        self.registry = CollectorRegistry()
        self._operations = Histogram(
            "drayman_driver_claim_duration_seconds",
            "Time to prepare or unprepare a claim.",
            ("driver", "operation", "is_error"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._driver = driver
        self.prepared = self._gauge("claims_prepared", "Claims that are prepared.")
        self.devices = self._gauge("devices_published", "Devices in the published slices.")
        self.unhealthy = self._gauge("devices_unhealthy", "Devices that are tainted as unhealthy.")
        self.discovery_failures = self._counter(
            "discovery_failures",
            "Discoveries that failed or found nothing where devices are in use.",
        )
        self.publish_failures = self._counter(
            "publish_failures", "Attempts to publish that the API server or its absence prevented."
        )

    def _gauge(self, name: str, text: str) -> Gauge:
        full = f"drayman_driver_{name}"
        return Gauge(full, text, ("driver",), registry=self.registry).labels(self._driver)

    def _counter(self, name: str, text: str) -> Counter:
        full = f"drayman_driver_{name}"
        return Counter(full, text, ("driver",), registry=self.registry).labels(self._driver)

    @contextmanager
    def operation(self, name: str) -> Iterator[None]:
        """Times what is done for a claim; an exception counts as an error."""
        began = perf_counter()
        failed = True
        try:
            yield
            failed = False
        finally:
            child = self._operations.labels(self._driver, name, str(failed).lower())
            child.observe(perf_counter() - began)
