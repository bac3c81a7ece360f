"""`drayman map`: where the devices of a cluster are and what holds them."""
