"""OpenAPI for everything that is served, made from the tables of messages and the schemas of custom resources."""

from drayman.api.schema.openapi.publishing import Asked, Publication
from drayman.api.schema.openapi.resources import ServedResource, ServedSubresource

__all__ = ["Asked", "Publication", "ServedResource", "ServedSubresource"]
