"""Where `tpu` meets other code that has no hook for it: one file each, with its reason."""
