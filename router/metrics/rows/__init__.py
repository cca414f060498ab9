"""Rows of the catalogue, in one module for each subject."""
