#include "dispatch/histogram.h"

#include "dispatch/bound_op.h"

namespace torch_tpu {

std::vector<at::Tensor> HistogramddBinEdges(const at::Tensor& self, at::IntArrayRef bins,
                                            std::optional<at::ArrayRef<double>> range,
                                            const std::optional<at::Tensor>& weight, bool density) {
  TORCH_CHECK(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions, but got ",
              self.dim());
  const int64_t dims = self.size(-1);
  TORCH_CHECK(static_cast<int64_t>(bins.size()) == dims, "torch.histogramdd: expected ", dims,
              " sequences of bin edges for a ", dims, "-dimensional histogram but got ", bins.size());
  TORCH_CHECK(!range || static_cast<int64_t>(range->size()) == 2 * dims, "torch.histogramdd: for a ", dims,
              "-dimensional histogram range should have ", 2 * dims, " elements, but got ", range ? range->size() : 0);
  static InternalOp& edges = *new InternalOp("tpu::histogram_edges(Tensor x, int bins, float[]? range) -> Tensor");
  const at::Tensor points = self.reshape({-1, dims});
  std::vector<at::Tensor> result;
  for (int64_t i = 0; i < dims; ++i) {
    c10::IValue ends;
    if (range) ends = std::vector<double>{(*range)[2 * i], (*range)[2 * i + 1]};
    result.push_back(edges.Run({points.select(1, i), bins[i], ends}, self.device().index())[0]);
  }
  return result;
}

}  // namespace torch_tpu
