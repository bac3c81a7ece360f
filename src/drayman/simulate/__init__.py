"""Questions answered without changing anything."""
