// Dense linear algebra as loops over batches of matrices. All operands are [batch, rows, columns] in float32, float64
// or their complex counterparts, with no dim of size zero, unless said otherwise.
#pragma once

#include <vector>

#include "lowering/table.h"
#include "program/builder.h"

namespace torch_tpu {

// ---- linalg_matrix.cc: pieces
Value Flat(Builder& b, Value x);                  // [.., m, n] -> [batch, m, n]
Value FlatVectors(Builder& b, Value x);           // [.., n] -> [batch, n]
Dims BatchOf(const Value& x, int64_t inner = 2);  // the dims before the last `inner`
Dims Joined(Dims batch, const Dims& inner);
Value Conj(Builder& b, Value x);               // of reals: x itself
Value Adjoint(Builder& b, Value x);            // conjugate transpose
Value RowIndex(Builder& b, const Dims& dims);  // int64 [.., m, n]
Value ColumnIndex(Builder& b, const Dims& dims);
Value DownRows(Builder& b, Value v, int64_t columns);    // [batch, m] -> [batch, m, columns]
Value AcrossColumns(Builder& b, Value v, int64_t rows);  // [batch, n] -> [batch, rows, n]
Value Column(Builder& b, Value x, Value k);              // [batch, m]
Value RowOf(Builder& b, Value x, Value k);               // [batch, n]
Value WithColumn(Builder& b, Value x, Value k, Value column);
Value Masked(Builder& b, Value mask, Value x);  // zero elsewhere
Value Diagonal(Builder& b, Value x);            // [batch, min(m, n)]
Value Triangle(Builder& b, Value x, bool lower, bool with_diagonal);
Value Identity(Builder& b, DType dtype, const Dims& dims);
Value Product(Builder& b, Value x, Value y);           // batched matrix product
Value SquaredNorms(Builder& b, Value x, int64_t dim);  // real, sum of |x|^2 over dim
// body(k, state) -> state for k = 0 .. count - 1 (backwards: count - 1 .. 0).
using Step = std::function<Values(Value k, const Values& state)>;
Values ForEach(Builder& b, int64_t count, const Values& state, const Step& step, bool backwards = false);

// ---- linalg_lu.cc
struct Lu {
  Value packed, pivots, info;  // pivots: int32 [batch, min(m, n)], from one; info: int32 [batch]
};
Lu LuFactor(Builder& b, Value x, bool pivot);
Value PivotsToRows(Builder& b, Value pivots, int64_t m);  // int64 [batch, m]: row i of the permuted is row result[i]
Value LuSolve(Builder& b, Value packed, Value pivots, Value rhs, bool adjoint);

// ---- linalg_qr.cc
struct Qr {
  Value packed, tau;
};
Qr Geqrf(Builder& b, Value x);  // LAPACK's signs
Value HouseholderProduct(Builder& b, Value packed, Value tau, int64_t columns);
// Orthonormal columns of x where they are not zero; the others, and those up to `columns`, are filled with a
// completion.
Value Completed(Builder& b, Value x, int64_t columns);

// ---- linalg_eigen.cc
struct Singular {
  Value u, s, v;  // x = u diag(s) v^H; u: [m, min or m], v: [n, min or n]
};
Singular Svd(Builder& b, Value x, bool full);

// Parts of LinalgRows.
std::vector<OpRow> TriangularRows();  // linalg.cc
std::vector<OpRow> LuRows();
std::vector<OpRow> QrRows();
std::vector<OpRow> EigenRows();         // linalg_eigen.cc
std::vector<OpRow> LeastSquaresRows();  // linalg_lstsq.cc

}  // namespace torch_tpu
