"""What the devices of a cluster are used for, and where they are."""
