"""Pods leave devices that are tainted with NoExecute.

Decisions are made in `taints`, `pools` and `rule_status`, by functions of the objects alone; `controller` follows the cluster and the
clock.
"""
