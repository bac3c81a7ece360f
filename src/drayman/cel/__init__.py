"""The Common Expression Language with Kubernetes' environment for device selectors.

The rest of Drayman uses `device`; an `environment` serves other variables and libraries.
"""
