"""Compares Transformers models on `tpu` with the CPU, one small model of each architecture family: `python -m
tools.model_sweep`.

A family is a configuration type of Transformers (`CONFIG_MAPPING`). Its configuration is made small by name
(`shrink`), the model gets random weights and inputs of its kind (`inputs`), and `check` compares values, gradients,
ties and greedy generation."""
