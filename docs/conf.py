"""Sphinx configuration: the manual's pages, `torch.tpu` from its docstrings, and tables from the built package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from tables import write
from torch_tpu._version import __version__

project = "torch_tpu"
author = "the torch_tpu authors"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "PyTorch's tpu device", "page_width": "1100px"}
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing", "toc.not_included"]
autodoc_default_options = {"members": True, "undoc-members": False}
autodoc_typehints = "description"

write(Path(__file__).parent / "_build" / "tables")
