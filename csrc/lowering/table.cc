#include "lowering/table.h"

#include <string>
#include <unordered_map>

#include "base/error.h"

namespace torch_tpu {

const std::vector<OpRow>& AllRows() {
  static const std::vector<OpRow>* rows = [] {
    auto* all = new std::vector<OpRow>;
    for (auto family :
         {PointwiseRows(),   ActivationRows(), ReductionRows(),     ShapeRows(),       IndexingRows(), MatmulRows(),
          ConvolutionRows(), PoolingRows(),    NormalizationRows(), AttentionRows(),   LossRows(),     RandomRows(),
          SortRows(),        OptimizerRows(),  SpecialRows(),       FftRows(),         LinalgRows(),   DistanceRows(),
          CountingRows(),    MarginLossRows(), GridSamplerRows(),   ControlFlowRows(), ViewRows()}) {
      all->insert(all->end(), family.begin(), family.end());
    }
    return all;
  }();
  return *rows;
}

const OpRow* FindRow(std::string_view name) {
  static const std::unordered_map<std::string_view, const OpRow*>* index = [] {
    auto* map = new std::unordered_map<std::string_view, const OpRow*>;
    for (const OpRow& row : AllRows()) {
      if (!map->emplace(row.name, &row).second) Fail(Code::kInternal, row.name, ": expected one lowering row, got two");
    }
    return map;
  }();
  auto found = index->find(name);
  return found == index->end() ? nullptr : found->second;
}

}  // namespace torch_tpu
