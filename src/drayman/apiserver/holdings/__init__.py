"""What claims hold, guarded by the server: no device is given away twice, and none is taken from under a running pod."""
