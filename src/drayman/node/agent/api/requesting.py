"""How a node gets a certificate from its cluster: it creates a CertificateSigningRequest, and waits until that is approved and signed.

An embedded cluster does that by itself. Elsewhere an administrator has to approve what nodes serve with, which may take days. A request
that is removed meanwhile is made again.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Final

from drayman.api.certificates import (
    DENIED,
    FAILED,
    CertificateSigningRequest,
    CertificateSigningRequestSpec,
)
from drayman.api.meta import ObjectMeta
from drayman.cluster.client import Client
from drayman.cluster.errors import AlreadyExistsError
from drayman.cluster.informer import Informer, Notice, Selection
from drayman.cluster.options import WriteOptions
from drayman.cluster.resources import SIGNING_REQUESTS
from drayman.node.reporting import MANAGER
from drayman.workloads.certificates.signers import DIGITAL_SIGNATURE, SERVER_AUTH, SERVING

_OPTIONS: Final = WriteOptions(field_manager=MANAGER)


class RefusedError(Exception):
    """A request was denied, or its signer refused it. The same request would be refused again."""


async def serving_certificate(client: Client, name: str, request: bytes) -> bytes:
    """The certificate, in PEM, for a request of this name, when it has been signed. Raises ClusterError and RefusedError."""
    selection = Selection(SIGNING_REQUESTS, field_selector=f"metadata.name={name}")
    informer = Informer(client, selection)
    changed = asyncio.Event()

    def on_change(_notice: Notice[CertificateSigningRequest]) -> None:
        changed.set()

    informer.add_handler(on_change)
    async with informer:
        await informer.wait_synced()
        while True:
            changed.clear()
            found = informer.cache.get(name)
            if found is None:
                version = await _create(client, name, request)
                await informer.wait_seen(version)
            elif signed := _signed(found):
                return signed
            else:
                await changed.wait()


async def _create(client: Client, name: str, request: bytes) -> str:
    """Returns the version of the request, be it ours from before."""
    spec = CertificateSigningRequestSpec(
        request=base64.b64encode(request).decode(),
        signer_name=SERVING,
        usages=(DIGITAL_SIGNATURE, SERVER_AUTH),
    )
    value = CertificateSigningRequest(metadata=ObjectMeta(name=name), spec=spec)
    resource = SIGNING_REQUESTS.as_values()
    try:
        body = SIGNING_REQUESTS.codec.to_value(value)
        made = await client.create(resource, body, options=_OPTIONS)
    except AlreadyExistsError:
        made = await client.get(resource, name)
    return str(made["metadata"]["resourceVersion"])


def _signed(found: CertificateSigningRequest) -> bytes | None:
    """Raises RefusedError."""
    for kind in (DENIED, FAILED):
        condition = found.status.condition(kind)
        if condition is not None:
            why = condition.message or condition.reason or "no reason is given"
            raise RefusedError(f"CertificateSigningRequest {found.metadata.name}: {kind}: {why}")
    certificate = found.status.certificate
    return base64.b64decode(certificate) if certificate else None
