"""Jobs: pods that run to their end, counted once each."""
