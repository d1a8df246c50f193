"""1024x1024 matrix products."""

from paired import Row, run

ROWS = [Row("matmul", 5, 15, ("loop", 1.1)), Row("matmul_bf16", 5, 9)]

if __name__ == "__main__":
    run("matrix product", ROWS)
