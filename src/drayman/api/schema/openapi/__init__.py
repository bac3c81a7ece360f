"""OpenAPI for everything that is served, made from the tables of messages and the schemas of custom resources."""

from drayman.api.schema.openapi.documents import (
    document_hash,
    encode_document,
    openapi_v2,
    openapi_v3,
    openapi_v3_index,
)
from drayman.api.schema.openapi.gnostic import MEDIA_TYPE, encode_gnostic
from drayman.api.schema.openapi.publishing import Asked, Publication, PublishedPage
from drayman.api.schema.openapi.resources import ServedResource, ServedSubresource

__all__ = [
    "MEDIA_TYPE",
    "Asked",
    "Publication",
    "PublishedPage",
    "ServedResource",
    "ServedSubresource",
    "document_hash",
    "encode_document",
    "encode_gnostic",
    "openapi_v2",
    "openapi_v3",
    "openapi_v3_index",
]
