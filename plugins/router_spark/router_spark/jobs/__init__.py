"""The jobs: each a function of DataFrames, which reads and writes nothing."""
