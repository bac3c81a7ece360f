"""Traces of clusters, replayed with the decisions of the scheduler."""
