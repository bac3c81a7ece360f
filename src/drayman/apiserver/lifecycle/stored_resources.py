"""From storage names to the resources that serve the objects."""

from __future__ import annotations

from drayman.apiserver.served.resources import ApiResource, Resources


class StoredResources:
    """An index that follows the table of resources, custom ones too."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._places: dict[str, tuple[str, str, str]] = {}

    def find(self, storage: str) -> ApiResource | None:
        """The resource whose objects have this storage name, as it is served now."""
        return self._served(storage) or self._served_anew(storage)

    def _served(self, storage: str) -> ApiResource | None:
        place = self._places.get(storage)
        return None if place is None else self._resources.find(*place)

    def _served_anew(self, storage: str) -> ApiResource | None:
        # If two resources show the same objects, either will do.
        self._places = {
            resource.storage_name: (resource.group, resource.versions[0], resource.plural)
            for resource in reversed(list(self._resources))
        }
        return self._served(storage)
