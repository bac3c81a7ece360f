"""Kubernetes Dynamic Resource Allocation: every workload gets the right devices, every refusal a reason."""

__version__ = "0.1.0"
