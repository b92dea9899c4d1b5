"""What reruns the paper: its printed numbers, its tables as declarations, one measuring path, results, the report."""
