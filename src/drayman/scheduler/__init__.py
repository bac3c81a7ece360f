"""Places pods on nodes, and devices with them."""
