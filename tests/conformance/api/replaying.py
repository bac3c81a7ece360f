"""Sends the requests of vectors to a server and says where its answers differ from the recorded ones."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
import msgspec
from yarl import URL

from conformance.api.answers import Placeholders
from conformance.api.comparing import Answer, differences
from conformance.api.texts import text_differences
from conformance.api.vectors import Step, Vector, filled_in, parts, resolve
from conformance.records import JsonObject
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.http import Listener, start
from drayman.cluster.embedded.store import Store

_HEADERS: Final = {
    "User-Agent": "conformance/1",
    "Accept": "application/json",
    "Content-Type": "application/json",
}
_AT_ONCE: Final = 8
"""Vectors under way at a time: some wait, for a watch to end or for a definition to be served."""
_POLL_S: Final = 0.05


@dataclass(slots=True)
class Replayed:
    """What differs in a vector: in its answers, and in their texts alone."""

    name: str
    differences: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Replayer:
    """A client of one server. Every vector gets a namespace and a token of its own."""

    address: str
    session: aiohttp.ClientSession
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def replay(self, vectors: Iterable[Vector]) -> list[Replayed]:
        """How each vector goes."""
        places = asyncio.Semaphore(_AT_ONCE)

        async def replay(vector: Vector) -> Replayed:
            async with places:
                replayed = await self._replay(vector)
                if replayed.differences and vector.managed_fields:
                    # Owners of fields are ordered by whole seconds: a vector that runs over the end of one may differ once.
                    return await self._replay(vector)
                return replayed

        return await asyncio.gather(*map(replay, vectors))

    async def _replay(self, vector: Vector) -> Replayed:
        """Up to the first step that differs, as later ones build on it."""
        token = f"v{next(self._numbers):07}"
        placeholders, captured = Placeholders(token), dict[str, str]()
        namespace = await self._make_namespace(f"ns-{token}", vector.namespace_labels)
        placeholders.replaced(namespace, managed_fields=False)
        replayed = Replayed(vector.name)
        for text in vector.steps:
            step = filled_in(text, token, captured)
            placeholders.expect_generated_name(step.body)
            answer = await self._answer(step)
            for name, pointer in step.capture.items():
                captured[name] = str(resolve(answer.body, parts(pointer)))
            normal = placeholders.replaced(answer.body, managed_fields=vector.managed_fields)
            place = f"{step.method} {step.path}"
            found = list(differences(step.expect, answer, normal))
            if found:
                replayed.differences += [f"{place} {each}" for each in found]
                break
            texts = text_differences(step.expect, answer, token)
            replayed.texts += [f"{place} {each}" for each in texts]
        return replayed

    async def _make_namespace(self, name: str, labels: dict[str, str]) -> JsonObject:
        namespace = {"metadata": {"name": name, "labels": labels}}
        async with self.session.post(f"{self.address}/api/v1/namespaces", json=namespace) as made:
            return dict(await made.json())

    async def _answer(self, step: Step) -> Answer:
        deadline = asyncio.get_running_loop().time() + step.poll_s
        while True:
            answer = await self._send(step)
            late = asyncio.get_running_loop().time() >= deadline
            if answer.status == step.expect.status or late:
                return answer
            await asyncio.sleep(_POLL_S)

    async def _send(self, step: Step) -> Answer:
        query = f"?{urlencode(step.query)}" if step.query else ""
        content = step.content()
        request = self.session.request(
            step.method,
            URL(f"{self.address}{step.path}{query}", encoded=True),
            headers={**_HEADERS, **step.headers},
            data=None if content is None else BytesIO(content),
        )
        async with request as response:
            body = _body(response, await response.read(), stream=step.stream)
            return Answer(response.status, body, tuple(response.headers.getall("Warning", ())))


def _body(response: aiohttp.ClientResponse, content: bytes, *, stream: bool) -> Any:
    if response.content_type != "application/json":
        return {"contentType": response.content_type}
    if stream and response.status == 200:
        return {"events": [msgspec.json.decode(line) for line in content.splitlines() if line]}
    return msgspec.json.decode(content)


@asynccontextmanager
async def replayer() -> AsyncIterator[Replayer]:
    """A client of a new server with nothing in it, and no controllers: they would change the objects of a vector while it runs."""
    with Store.open(None) as store:
        server = make_server(store)
        await create_first_objects(server.core)
        running = await start(server, Listener())
        async with aiohttp.ClientSession() as session:
            yield Replayer(running.url, session)
        await running.stop()
