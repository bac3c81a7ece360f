"""Signs what was approved, for the signers that an API server and its nodes recognise, with the key of the cluster's authority."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Final, Protocol

from msgspec.structs import replace

from drayman.api.certificates import (
    APPROVED,
    DENIED,
    FAILED,
    CertificateSigningRequest,
    SigningRequestCondition,
)
from drayman.cluster.client import Client
from drayman.cluster.informers import Informers
from drayman.cluster.resources import SIGNING_REQUESTS
from drayman.controllers.workloads.reconciling import Key, Reconciler
from drayman.workloads.certificates.asking import RequestError, asked
from drayman.workloads.certificates.signers import SIGNERS, signing_problem

LONGEST: Final = timedelta(days=365)
"""How long a certificate is valid, unless its request asks for less."""
_REFUSED: Final = "SignerValidationFailure"


class SigningError(Exception):
    """The authority cannot sign."""


class Authority(Protocol):
    """Who has the key."""

    def sign(self, request: bytes, usages: tuple[str, ...], lifetime: timedelta) -> bytes:
        """A certificate, in PEM, with the key, subject and alternative names of a request, and nothing else of it. Raises SigningError."""


class CertificateSigner(Reconciler[CertificateSigningRequest]):
    """Puts certificates into requests, or says why there is none."""

    resource = SIGNING_REQUESTS
    component = "certificate-signer"
    workers = 1

    def __init__(self, client: Client, informers: Informers, *, authority: Authority) -> None:
        super().__init__(client, informers)
        self._authority = authority

    async def reconcile(self, key: Key) -> None:
        request = self.find(key)
        if request is None or not _is_due(request):
            return
        spec = request.spec
        try:
            problem = signing_problem(spec.signer_name, asked(spec.request), spec.usages)
        except RequestError as error:
            problem = str(error)
        if problem:
            await self._refuse(request, problem)
        else:
            await self._sign(request)

    async def _sign(self, request: CertificateSigningRequest) -> None:
        spec = request.spec
        wanted = spec.expiration_seconds
        lifetime = LONGEST if wanted is None else min(LONGEST, timedelta(seconds=wanted))
        try:
            signed = self._authority.sign(base64.b64decode(spec.request), spec.usages, lifetime)
        except SigningError as error:
            self.record(request, "Warning", "SigningFailed", str(error))
            self.queue.retry(("", request.metadata.name))
            return
        certificate = base64.b64encode(signed).decode()
        await self.write_status(request, replace(request.status, certificate=certificate))

    async def _refuse(self, request: CertificateSigningRequest, problem: str) -> None:
        condition = SigningRequestCondition(
            type_=FAILED, status="True", reason=_REFUSED, message=problem
        )
        conditions = (*request.status.conditions, condition)
        await self.write_status(request, replace(request.status, conditions=conditions))


def _is_due(request: CertificateSigningRequest) -> bool:
    status = request.status
    return (
        request.spec.signer_name in SIGNERS
        and not status.certificate
        and status.condition(APPROVED) is not None
        and status.condition(DENIED) is None
        and status.condition(FAILED) is None
    )
