// A row of the lowering table: an op's name, how it is lowered, and facts about it. The table itself is
// lowering/table.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "program/builder.h"
#include "program/op_call.h"

namespace torch_tpu {

// Pure: the same call gives the same program. Throws Error on what it cannot lower.
using Emit = Values (*)(Builder&, const Args&);

// Facts of a row that its emit cannot say.
enum Trait : uint32_t {
  kNoTraits = 0,
  kRandom = 1 << 0,          // takes the generator's state as a last operand (schema argument `generator`)
  kKeyScalars = 1 << 1,      // its Scalar and float arguments decide the program (rare: they are operands otherwise)
  kFunctionalOnly = 1 << 2,  // do not derive the in-place and out= variants
  kNoMeta = 1 << 3,          // PyTorch has no meta kernel, or one that is wrong here: outputs are contiguous
  kInternal = 1 << 4,        // ours, not an ATen op: name "tpu::...", not registered with the dispatcher
  kIdempotent = 1 << 6,      // writes the same value however often: may write through overlapping strides, as on CPU
  kPowIdentity = 1 << 5,     // Scalar arguments equal to a small number (-2..4, 0.5, -0.5) are part of the program
  kOwnDerivative = 1
      << 7,  // composite in PyTorch, but with a backend kernel and a derivative of its own: bound all the same
  kColumnMajor = 1 << 8,      // results of the first tensor's rank are column-major, as LAPACK leaves matrices
  kLayoutOfFirst = 1 << 9,    // results are dense, in the first tensor's memory format
  kLayoutOfCpu = 1 << 10,     // the meta kernel's strides are wrong: the CPU kernel is asked, on zeros
  kColumnMajorOut = 1 << 11,  // an out= argument without elements becomes column-major, results are not
};

struct OpRow {
  std::string_view name;  // functional ATen schema: "add.Tensor"; in-place and out= variants follow from it
  Emit emit;
  uint32_t traits = kNoTraits;
};

}  // namespace torch_tpu
