"""Requests that probes and hooks make by HTTP."""

from __future__ import annotations

from typing import Final

from aiohttp import ClientError, ClientResponse, ClientSession, DummyCookieJar, TCPConnector
from aiohttp.client_exceptions import ClientConnectorError
from multidict import CIMultiDict
from yarl import URL

from drayman.node.agent.handlers import HttpGetAction
from drayman.node.agent.probes.answers import Answer, Asked, address, why
from drayman.node.agent.probes.container_health import Outcome
from drayman.node.reporting import VERSION

USER_AGENT: Final = f"kube-probe/{VERSION.removeprefix('v').rpartition('.')[0]}"
_LONGEST_BODY: Final = 10 * 1024
"""What is read of an answer; a server that goes on is left."""
_MOST_REDIRECTS: Final = 10


class RequestError(Exception):
    """There was no answer."""


async def ask_http(asked: Asked, action: HttpGetAction) -> Answer:
    """Raises PortError."""
    try:
        status, body = await get(asked, action)
    except RequestError as error:
        return Answer(Outcome.FAILURE, str(error))
    if not 200 <= status < 400:
        return Answer(Outcome.FAILURE, f"HTTP probe failed with statuscode: {status}")
    if status >= 300:
        return Answer(Outcome.SUCCESS, f"Probe terminated redirects, Response body: {body}")
    return Answer(Outcome.SUCCESS)


async def get(asked: Asked, action: HttpGetAction) -> tuple[int, str]:
    """The status of the last answer, and the beginning of its body. Redirects are followed on the same host.

    Raises PortError and RequestError.
    """
    url = first = url_of(asked, action)
    try:
        # The certificate of a server need not name the address of its pod, so nobody looks at it.
        async with ClientSession(
            connector=TCPConnector(ssl=False, force_close=True),
            cookie_jar=DummyCookieJar(),
            headers=headers_of(action),
            skip_auto_headers=("Accept-Encoding", "User-Agent", "Accept"),
            auto_decompress=False,
        ) as session:
            for _ in range(_MOST_REDIRECTS):
                async with session.get(url, allow_redirects=False, timeout=None) as response:
                    target = _redirect(response)
                    if target is None or target.host != first.host:
                        return response.status, await _beginning(response)
                    url = target
    except ClientConnectorError as error:
        raise RequestError(f'Get "{url}": {why(error.os_error)}') from error
    except (ClientError, ValueError, OSError) as error:
        raise RequestError(f'Get "{url}": {error}') from error
    raise RequestError(f'Get "{url}": stopped after {_MOST_REDIRECTS} redirects')


def url_of(asked: Asked, action: HttpGetAction) -> URL:
    """Raises PortError."""
    where = address(action.host or asked.pod_ip, asked.port(action.port))
    return URL(f"{action.scheme.lower()}://{where}/{action.path.removeprefix('/')}")


def headers_of(action: HttpGetAction) -> CIMultiDict[str]:
    """Those of the pod, which may replace what is sent otherwise; an empty one takes it away."""
    own: CIMultiDict[str] = CIMultiDict((each.name, each.value) for each in action.http_headers)
    for name, value in (("User-Agent", USER_AGENT), ("Accept", "*/*")):
        if own.setdefault(name, value) == "":
            del own[name]
    return own


def _redirect(response: ClientResponse) -> URL | None:
    location = response.headers.get("Location")
    if response.status not in (301, 302, 303, 307, 308) or not location:
        return None
    return response.url.join(URL(location))


async def _beginning(response: ClientResponse) -> str:
    body = bytearray()
    while len(body) < _LONGEST_BODY and (data := await response.content.read(_LONGEST_BODY)):
        body += data
    return bytes(body[:_LONGEST_BODY]).decode("utf-8", "replace")
