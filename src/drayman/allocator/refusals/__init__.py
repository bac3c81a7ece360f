"""Why there is no allocation: what drops out at each test, and how final that is."""
