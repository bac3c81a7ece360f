"""Patches of every kind, and who owns which field. Pure functions on decoded JSON.

`json_patch`, `merge_patch` and `strategic` each apply one kind of patch. Server-side apply, and the record of field owners that
every write updates, is in `field_manager`. It is built on sets of fields (`field_set`), the shapes of values (`shapes`), walks over
values (`tracing`, `combining`, `checking`) and the rules of ownership (`ownership`).
"""

from drayman.apiserver.patching.builtin_shapes import shape_of, zero_of
from drayman.apiserver.patching.conflicts import Conflict, ConflictError
from drayman.apiserver.patching.custom_shapes import custom_resource_shape
from drayman.apiserver.patching.factories import (
    builtin_field_manager,
    field_manager,
)
from drayman.apiserver.patching.field_manager import FieldManager
from drayman.apiserver.patching.json_patch import apply_json_patch
from drayman.apiserver.patching.merge_patch import apply_merge_patch
from drayman.apiserver.patching.scaling import ScaleOwnership
from drayman.apiserver.patching.strategic import apply_strategic_merge

__all__ = [
    "Conflict",
    "ConflictError",
    "FieldManager",
    "ScaleOwnership",
    "apply_json_patch",
    "apply_merge_patch",
    "apply_strategic_merge",
    "builtin_field_manager",
    "custom_resource_shape",
    "field_manager",
    "shape_of",
    "zero_of",
]
