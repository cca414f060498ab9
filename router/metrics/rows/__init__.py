"""Rows of the catalogue, in a module for each kind of thing that they are about."""
