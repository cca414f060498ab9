"""Jobs: functions from DataFrames to DataFrames, which read and write no files."""
