"""`python -m drayman` is `drayman`."""

from drayman.cli.main import main

main()
