"""The versions this build belongs to: its own, and the one torch release whose C++ ABI the extension was compiled for."""

__version__ = "0.1.0"
BUILT_FOR_TORCH = "2.13.0"
