"""The configuration: what may be set, how it is read from a file, and what is wrong with it."""
