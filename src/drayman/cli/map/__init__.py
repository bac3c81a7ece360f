"""`drayman map`: where the devices of a cluster are and who has them."""
