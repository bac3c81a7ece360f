"""The control loops that keep a cluster's objects true to each other."""
