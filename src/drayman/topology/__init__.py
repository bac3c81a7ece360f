"""Where devices and nodes are, and how far apart: read from attributes and labels, never guessed.

`locality` and `kind` read one device; `link` measures two of one node; `Matrix` is `nvidia-smi topo -m` as data; `levels`
reads what node labels say about racks, blocks and NVLink domains.
"""

from drayman.topology.distance import Distance, Link
from drayman.topology.levels import LevelKind, levels
from drayman.topology.locality import DeviceKind, Locality, kind, locality
from drayman.topology.matrix import Matrix, matrix

__all__ = [
    "DeviceKind",
    "Distance",
    "LevelKind",
    "Link",
    "Locality",
    "Matrix",
    "kind",
    "levels",
    "locality",
    "matrix",
]
