"""What containers are asked and told while they run: probes and hooks."""
