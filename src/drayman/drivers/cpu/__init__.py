"""CPUs as `dra.cpu` serves them: one device for those of each NUMA node, shared by capacity, or one for each CPU."""
