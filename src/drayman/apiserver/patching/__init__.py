"""Patches of every kind, and who owns which field. Pure functions on decoded JSON.

`json_patch`, `merge_patch` and `strategic` each apply one kind of patch. Server-side apply, and the record of field owners that
every write updates, is in `field_manager`. It is built on sets of fields (`field_set`), the shapes of values (`shapes`), walks over
values (`tracing`, `combining`, `checking`) and the rules of ownership (`ownership`).
"""
