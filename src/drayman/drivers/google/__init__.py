"""Google's TPUs as `tpu.google.com` serves them: all chips of a host are used together."""
