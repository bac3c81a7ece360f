"""Requests and answers as values: who asks, options, forms, limits, and refusals in Kubernetes' words."""
