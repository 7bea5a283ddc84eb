"""JSON and YAML as `squeue --json` and its like print them."""
