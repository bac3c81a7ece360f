"""Which flavors a workload gets: those that take its pods, in the order that its queue prefers."""
