"""The OpenAPI documents of what is served now."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from drayman.api.schema.openapi import Asked, Publication, ServedResource, ServedSubresource
from drayman.apiserver.describing.system import GIT_VERSION
from drayman.apiserver.protocol.environment import Clock
from drayman.apiserver.protocol.exchange import JSON_TYPE, Request, Response
from drayman.apiserver.requests.beside import beside
from drayman.apiserver.served.resources import ApiResource, Resources, Subresource


@dataclass(slots=True)
class OpenApiDocuments:
    """Answers requests for OpenAPI. Uses the table of resources, and reads it again only when it has changed."""

    resources: Resources
    clock: Clock
    _publication: Publication = field(default_factory=lambda: Publication(GIT_VERSION))
    _generation: int = -1

    async def answer(self, request: Request) -> Response | None:
        """The answer, or None for a path that is not a document."""
        if self._generation != self.resources.generation:
            self._publication.update(served_resources(self.resources))
            self._generation = self.resources.generation
        asked = Asked(
            request.path,
            request.query.get("hash"),
            request.header("accept"),
            request.header("if-none-match"),
        )
        find = partial(self._publication.answer, asked, self.clock.now())
        # Describing everything takes seconds the first time.
        page = find() if self._publication.is_made(asked) else await beside(find)
        if page is None:
            return None
        headers = dict(page.headers)
        content_type = headers.pop("Content-Type", JSON_TYPE)
        return Response(page.status, page.body, content_type, headers)


def served_resources(resources: Resources) -> dict[tuple[str, str], list[ServedResource]]:
    """What is served in each group version. What only has parts, or is answered and not stored, is not described: it has no schema."""
    found = {
        (group, version): [
            _served(resource, version)
            for resource in resources.in_version(group, version)
            if resource.verbs and not resource.read_handlers
        ]
        for group, versions in resources.groups().items()
        for version in versions
    }
    return {place: served for place, served in found.items() if served}


def _served(resource: ApiResource, version: str) -> ServedResource:
    return ServedResource(
        resource.plural,
        resource.kind,
        resource.namespaced,
        frozenset(resource.verbs),
        tuple(_served_part(resource, version, part) for part in resource.subresources),
        None if resource.codec is None else resource.codec.openapi(version),
    )


def _served_part(resource: ApiResource, version: str, part: Subresource) -> ServedSubresource:
    kind = part.kind or resource.kind_in(version)
    return ServedSubresource(part.name, kind.group, kind.version, kind.kind, frozenset(part.verbs))
