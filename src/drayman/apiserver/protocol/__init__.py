"""Requests and answers as values: callers, options, forms, limits, and refusals in Kubernetes' words."""
