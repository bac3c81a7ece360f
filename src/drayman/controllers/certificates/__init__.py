"""Certificates of an embedded cluster: requests of nodes are approved, approved ones signed, and old ones removed.

On a real cluster kube-controller-manager signs and removes, administrators approve what nodes serve with, and nothing here runs.
"""
