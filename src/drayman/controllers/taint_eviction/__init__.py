"""Pods leave devices that are tainted with NoExecute.

What is decided is in `taints`, `pools` and `rule_status`, as functions of the objects alone; `controller` follows the cluster and the
clock.
"""
