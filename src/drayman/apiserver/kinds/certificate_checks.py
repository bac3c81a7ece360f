"""What a CertificateSigningRequest may contain. Errors that the stored one already has may stay."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Final

from drayman.api import formats
from drayman.api.certificates import APPROVED, DENIED, FAILED
from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
)
from drayman.apiserver.kinds.reading import at, each_at, items_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Object
from drayman.workloads.certificates.texts import certificate_problem, request_problem

FINAL: Final = (APPROVED, DENIED, FAILED)
CONDITIONS: Final = "status.conditions"
CERTIFICATE: Final = "status.certificate"
_STATUSES: Final = ("False", "True", "Unknown")
_LEGACY_SIGNER: Final = "kubernetes.io/legacy-unknown"
_SHORTEST_S: Final = 600
_DOMAIN_LENGTH: Final = 253
_SIGNER_LENGTH: Final = _DOMAIN_LENGTH + 1 + _DOMAIN_LENGTH + 63 + 1
_USAGES: Final = tuple(
    sorted(
        (
            "signing",
            "digital signature",
            "content commitment",
            "key encipherment",
            "key agreement",
            "data encipherment",
            "cert sign",
            "crl sign",
            "encipher only",
            "decipher only",
            "any",
            "server auth",
            "client auth",
            "code signing",
            "email protection",
            "s/mime",
            "ipsec end system",
            "ipsec tunnel",
            "ipsec user",
            "timestamping",
            "ocsp signing",
            "microsoft sgc",
            "netscape sgc",
        )
    )
)


def bytes_at(obj: Json, *path: str) -> bytes:
    try:
        return base64.b64decode(text_at(obj, *path))
    except (ValueError, binascii.Error):
        return b""


def _signer(name: str) -> Errors:
    """A domain, and a path in it."""
    path = "spec.signerName"
    if not name:
        yield required(path)
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid(path, name, detail)
        return
    if len(domain) > _DOMAIN_LENGTH:
        yield too_long(path, _DOMAIN_LENGTH)
    yield from _labels(domain, path, formats.dns_label_problems)
    if "." not in domain:
        detail = "should be a domain with at least two segments separated by dots"
        yield invalid(path, domain, detail)
    yield from _labels(rest, path, formats.dns_subdomain_problems)
    if len(name) > _SIGNER_LENGTH:
        yield too_long(path, _SIGNER_LENGTH)


def _labels(text: str, path: str, problems_of: Callable[[str], formats.Problems]) -> Errors:
    """The problems of the first part that has any; the others would only repeat them."""
    for label in text.split("."):
        if problems := problems_of(label):
            for problem in problems:
                yield invalid(path, text, f'validating label "{label}": {problem}')
            return


def _usages(obj: Object, old: Object | None) -> Errors:
    usages, before = items_at(obj, "spec", "usages"), items_at(old, "spec", "usages")
    if not usages:
        yield required("spec.usages")
    if all(usage in _USAGES for usage in before):
        for index, usage in enumerate(usages):
            if usage not in _USAGES:
                yield not_supported(f"spec.usages[{index}]", usage, _USAGES)
    if len(set(before)) == len(before):
        seen: set[str] = set()
        for index, usage in enumerate(usages):
            if usage in seen:
                yield duplicate(f"spec.usages[{index}]", usage)
            seen.add(usage)


def _conditions(obj: Object, old: Object | None) -> Errors:
    conditions = items_at(old, "status", "conditions")
    before = {text_at(c, "type") for c in conditions}
    decided_twice, repeated = {APPROVED, DENIED} <= before, len(before) < len(conditions)
    seen: set[str] = set()
    for where, condition in each_at(obj, "", "status", "conditions"):
        kind, status = text_at(condition, "type"), text_at(condition, "status")
        if not kind and "" not in before:
            yield required(f"{where}.type")
        allowed = ("True",) if kind in FINAL else _STATUSES
        if not status:
            yield required(f"{where}.status")
        elif status not in allowed:
            yield not_supported(f"{where}.status", status, allowed)
        other = {APPROVED: DENIED, DENIED: APPROVED}.get(kind)
        if other in seen and not decided_twice:
            detail = "Approved and Denied conditions are mutually exclusive"
            yield invalid(CONDITIONS, kind, detail)
        if kind in seen and not repeated:
            yield duplicate(f"{where}.type", kind)
        seen.add(kind)


def check(obj: Object, old: Object | None) -> Errors:
    """All checks of a request. Errors that the stored one already has may stay."""
    if problem := request_problem(bytes_at(obj, "spec", "request")):
        yield invalid("spec.request", text_at(obj, "spec", "request"), problem)
    yield from _usages(obj, old)
    signer = text_at(obj, "spec", "signerName")
    if signer == _LEGACY_SIGNER and text_at(old, "spec", "signerName") != _LEGACY_SIGNER:
        detail = "the legacy signerName is not allowed via this API version"
        yield invalid("spec.signerName", signer, detail)
    else:
        yield from _signer(signer)
    seconds = at(obj, "spec", "expirationSeconds")
    if seconds is not None and seconds < _SHORTEST_S:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        yield invalid("spec.expirationSeconds", seconds, detail)
    yield from _conditions(obj, old)
    signed, before = (bytes_at(each, "status", "certificate") for each in (obj, old))
    if signed != before and (problem := certificate_problem(signed)):
        yield invalid(CERTIFICATE, "<certificate data>", problem)


def of_type(obj: Object, kind: str) -> list[Json]:
    return [c for c in items_at(obj, "status", "conditions") if text_at(c, "type") == kind]
