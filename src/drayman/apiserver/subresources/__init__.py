"""Subresources with their own behaviour: bind, evict, scale, and those that reach into a running pod."""
