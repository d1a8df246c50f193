"""A training step of the digits example."""

from paired import Row, run

ROWS = [Row("digits", 5, 11, ("loop", 1.25))]

if __name__ == "__main__":
    run("digits step", ROWS)
