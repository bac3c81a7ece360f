"""CustomResourceDefinitions, and the resources they define.

A definition is an object like others, whose rules are in `definition_checks`. `serving` turns each accepted one into a resource
in the same table as the built-in ones. What it accepts follows from an OpenAPI schema (`value_checks`), rules in CEL
(`rules`), defaults and pruning.
"""

from drayman.apiserver.extensions.builtin import builtin_definitions, install_builtin_definitions
from drayman.apiserver.extensions.serving import end_extensions, install_extensions

__all__ = [
    "builtin_definitions",
    "end_extensions",
    "install_builtin_definitions",
    "install_extensions",
]
