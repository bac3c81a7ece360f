"""DaemonSets: one pod on each node that it fits."""
