"""Large answers: compressed for clients that accept this, and refused to users who hold too much already.

Both are decided before a request counts as finished, so that what is recorded of it is what its sender gets.
"""

from __future__ import annotations

import zlib
from typing import Final

from drayman.apiserver.protocol.exchange import LongResponse, Request, Response
from drayman.apiserver.protocol.limits import SMALL_BODY, ServerLimits
from drayman.apiserver.requests.beside import beside

GZIP_FROM: Final = 128 * 1024
_GZIP_LEVEL: Final = 1
"""For clients on the same machine, a fast answer matters more than a small one."""
_GZIP_FORMAT: Final = 16 + zlib.MAX_WBITS


async def sendable(
    request: Request, answer: Response | LongResponse, limits: ServerLimits
) -> Response | LongResponse:
    """An answer as it is sent. Raises StatusError 429 if it is large and its sender has no room for it.

    What changes something is answered in any case: it is done. A list that is sent in pieces does not count: most of it is stored anyway.
    """
    length = answer.length if isinstance(answer, LongResponse) else len(answer.body)
    if length <= SMALL_BODY or request.method != "GET":
        return answer
    if length > GZIP_FROM and _accepts_gzip(request) and "Etag" not in answer.headers:
        whole = answer
        answer = await beside(lambda: _compressed(whole))
    if isinstance(answer, Response):
        limits.check_body(request.sender, len(answer.body))
    return answer


def _accepts_gzip(request: Request) -> bool:
    return "gzip" in request.header("accept-encoding")


def _compressed(answer: Response | LongResponse) -> Response:
    """The same answer, compressed piece by piece: it is never in memory as a whole."""
    pieces = answer.pieces if isinstance(answer, LongResponse) else (answer.body,)
    compressor = zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP_FORMAT)
    body = b"".join((*map(compressor.compress, pieces), compressor.flush()))
    headers = {**answer.headers, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(answer.status, body, answer.content_type, headers, answer.warnings)
