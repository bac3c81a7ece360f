"""Where devices and nodes are, and how far apart: read from attributes and labels, never guessed.

`locality` and `kind` read one device; `link` measures two of one node; `Matrix` is `nvidia-smi topo -m` as data; `places`
reads what node labels say about racks, blocks and NVLink domains; a `Hierarchy` is the levels of a cluster in their order.
"""

from drayman.topology.distance import Distance, Link
from drayman.topology.hierarchy import Hierarchy, Path, configured, recognised
from drayman.topology.levels import Level, LevelKind, Place, level_of, places
from drayman.topology.locality import DeviceKind, Locality, kind, locality, product_nvlinks
from drayman.topology.matrix import Matrix, matrix
from drayman.topology.stated import StatedPlaces, stated_by

__all__ = [
    "DeviceKind",
    "Distance",
    "Hierarchy",
    "Level",
    "LevelKind",
    "Link",
    "Locality",
    "Matrix",
    "Path",
    "Place",
    "StatedPlaces",
    "configured",
    "kind",
    "level_of",
    "locality",
    "matrix",
    "places",
    "product_nvlinks",
    "recognised",
    "stated_by",
]
