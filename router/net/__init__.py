"""Sockets: the Trio shell around the sans-I/O engine."""
