"""The conversion between versions that a CustomResourceDefinition declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from drayman.api.formats import dns_subdomain_problems
from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    FieldError,
    forbidden,
    invalid,
    invalid_each,
    not_supported,
    required,
)
from drayman.apiserver.extensions.names import dns_1035_problems

_STRATEGIES: Final = ("None", "Webhook")
_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_UNUSED: Final = "should not be set when strategy is not set to Webhook"
_FORM: Final = "; desired format: https://host[/path]"
_LAST_PORT: Final = 65535

Errors = Iterator[FieldError]


def conversion_errors(spec: Mapping[str, Json]) -> Errors:
    """The errors of a conversion. As upstream, fields have the names of an older version."""
    conversion, path = spec.get("conversion"), "spec.conversion"
    if conversion is None:
        return
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook") or {}
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or ()
    if not strategy:
        yield required(f"{path}.strategy")
    elif strategy not in _STRATEGIES:
        yield not_supported(f"{path}.strategy", strategy, _STRATEGIES)
    if strategy == "Webhook":
        yield from _client(client, f"{path}.webhookClientConfig")
        yield from _review_versions(versions, f"{path}.conversionReviewVersions")
        return
    if client is not None:
        yield forbidden(f"{path}.webhookClientConfig", _UNUSED)
    if versions:
        yield forbidden(f"{path}.conversionReviewVersions", _UNUSED)


def _client(client: Mapping[str, Json] | None, path: str) -> Errors:
    if client is None:
        yield required(path, "required when strategy is set to Webhook")
        return
    url, service = client.get("url"), client.get("service")
    if (url is None) is (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(url, f"{path}.url")
    elif service is not None:
        yield from _service(service, f"{path}.service")


def _url(text: str, path: str) -> Errors:
    try:
        url = urlsplit(text)
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    if url.scheme != "https":
        yield invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    user, _, host = url.netloc.rpartition("@")
    if not host:
        yield invalid(path, host, f"host must be specified{_FORM}")
    if "@" in url.netloc:
        yield invalid(path, user, "user information is not permitted in the URL")
    if url.fragment:
        yield invalid(path, url.fragment, "fragments are not permitted in the URL")
    if url.query:
        yield invalid(path, url.query, "query parameters are not permitted in the URL")


def _service(service: Mapping[str, Json], path: str) -> Errors:
    # Upstream mixes up the two: a missing name is reported as a missing namespace, and vice versa.
    for field, reported in (("namespace", "name"), ("name", "namespace")):
        if not service.get(field):
            yield required(f"{path}.{reported}")
    port = service.get("port") or 0
    if not 1 <= port <= _LAST_PORT:
        detail = f"port is not valid: must be between 1 and {_LAST_PORT}, inclusive"
        yield invalid(f"{path}.port", port, detail)
    place = service.get("path") or "/"
    if place != "/":
        yield from _path(place, f"{path}.path")


def _path(place: str, path: str) -> Errors:
    if place == "//":
        yield invalid(path, place, "segment[0] may not be empty")
        return
    if not place.startswith("/"):
        yield invalid(path, place, "must start with a '/'")
    for index, segment in enumerate(place[1:].removesuffix("/").split("/")):
        if not segment:
            yield invalid(path, place, f"segment[{index}] may not be empty")
            continue
        for problem in dns_subdomain_problems(segment):
            yield invalid(path, place, f"segment[{index}]: {problem}")


def _review_versions(versions: Sequence[str], path: str) -> Errors:
    if not versions:
        yield required(path)
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid(f"{path}[{index}]", version, "duplicate version")
        else:
            yield from invalid_each(f"{path}[{index}]", version, dns_1035_problems(version))
    if not set(versions) & set(_REVIEW_VERSIONS):
        detail = f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"
        yield invalid(path, versions, detail)
