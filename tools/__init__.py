"""Programs for people who work on the repository; not installed."""
