"""Commands of `trioute`."""
