"""The `trioute` command."""
