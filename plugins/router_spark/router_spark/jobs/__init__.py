"""Jobs, as functions of DataFrames that read and write no files."""
