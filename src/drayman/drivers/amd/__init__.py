"""AMD's GPUs as `gpu.amd.com` serves them: whole, or in the equal partitions that the administrator has fixed."""
