"""The control loops that keep a cluster's objects consistent with each other."""
