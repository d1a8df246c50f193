// The edges of histogramdd, one tensor per dim.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

namespace torch_tpu {

std::vector<at::Tensor> HistogramddBinEdges(const at::Tensor& self, at::IntArrayRef bins,
                                            std::optional<at::ArrayRef<double>> range,
                                            const std::optional<at::Tensor>& weight, bool density);

}  // namespace torch_tpu
