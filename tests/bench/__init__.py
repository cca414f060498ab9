"""The benchmark: a load generator in C, a byte relay as the floor, and tables of what was measured.

``python -m tests.bench --help`` from the root of the repository tells how to run it.
"""
