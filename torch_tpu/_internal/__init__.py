"""Names of the original package that programs use although they are private."""
