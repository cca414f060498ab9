"""Rows of the catalogue of metrics, in one module for each subject."""
