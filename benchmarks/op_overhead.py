"""What an op costs in strict mode, steady state: `a + b` on 16x16 floats, and a chain of 100 ops."""

from paired import Row, run

ROWS = [Row("add", 2000, 15, ("peer", 0.25)), Row("chain", 20, 15, ("peer", 0.25))]

if __name__ == "__main__":
    run("op overhead, strict", ROWS)
