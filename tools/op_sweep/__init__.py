"""Runs PyTorch's operator database on a device against CPU PyTorch: `python -m tools.op_sweep --help`."""
