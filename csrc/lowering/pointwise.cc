#include <vector>

#include "lowering/elementwise.h"
#include "lowering/table.h"

namespace torch_tpu {

std::span<const OpRow> PointwiseRows() {
  static const std::vector<OpRow>* rows = [] {
    auto* all = new std::vector<OpRow>;
    for (auto part : {UnaryRows(), TranscendentalRows(), BinaryRows(), CompareRows(), BitwiseRows(), PowerRows(),
                      TernaryRows(), ComplexRows()}) {
      all->insert(all->end(), part.begin(), part.end());
    }
    return all;
  }();
  return *rows;
}

}  // namespace torch_tpu
