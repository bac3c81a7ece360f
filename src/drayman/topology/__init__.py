"""Where devices and nodes are, and how far apart: read from attributes and labels, never guessed.

`locality` and `kind` read one device; `link` measures two of one node; `Matrix` is `nvidia-smi topo -m` as data; `levels`
reads what node labels say about racks, blocks and NVLink domains.
"""

from drayman.topology.distance import Distance, Link, link
from drayman.topology.levels import Level, LevelKind, closest_common, levels
from drayman.topology.locality import DeviceKind, Locality, kind, locality
from drayman.topology.matrix import Matrix, Row, matrix

__all__ = [
    "DeviceKind",
    "Distance",
    "Level",
    "LevelKind",
    "Link",
    "Locality",
    "Matrix",
    "Row",
    "closest_common",
    "kind",
    "levels",
    "link",
    "locality",
    "matrix",
]
