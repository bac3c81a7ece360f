"""CustomResourceDefinitions, and the resources they define.

A definition is an object like others, whose rules are in `definition_checks`. `serving` turns each accepted one into a resource
in the same table as the built-in ones. What it accepts follows from an OpenAPI schema (`value_checks`), rules in CEL
(`rules`), defaults and pruning.
"""
