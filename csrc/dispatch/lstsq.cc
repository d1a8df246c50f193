#include "dispatch/lstsq.h"

#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>

#include <algorithm>
#include <limits>
#include <string>

#include "dispatch/bound_op.h"
#include "dispatch/tensors.h"

namespace torch_tpu {
namespace {

at::Tensor Nothing(const at::Tensor& like, c10::ScalarType dtype) {
  return MakeTensor(dtype, {0}, like.device().index());
}

void CheckArguments(const at::Tensor& a, const at::Tensor& rhs, const std::string& driver, bool vector) {
  TORCH_CHECK(a.dim() >= 2, "torch.linalg.lstsq: input must have at least 2 dimensions.");
  TORCH_CHECK(rhs.dim() >= 1, "torch.linalg.lstsq: other must have at least 1 dimension.");
  TORCH_CHECK(at::isFloatingType(a.scalar_type()) || at::isComplexType(a.scalar_type()),
              "torch.linalg.lstsq: Expected a floating point or complex tensor as input, but got ", a.scalar_type());
  TORCH_CHECK(a.scalar_type() == rhs.scalar_type(),
              "torch.linalg.lstsq: Expected input and other to have the same "
              "dtype, but got input's dtype ",
              a.scalar_type(), " and other's dtype ", rhs.scalar_type());
  const int64_t difference = a.dim() - rhs.dim();
  TORCH_CHECK(difference >= 0,
              "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and "
              "(input.dim() - other.dim()) <= 1");
  TORCH_CHECK(difference <= 1,
              "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and "
              "(input.dim() - other.dim()) <= 1");
  TORCH_CHECK(a.size(-2) == rhs.size(vector ? -1 : -2), "torch.linalg.lstsq: input.size(-2) should match other.size(",
              vector ? -1 : -2, ")");
  TORCH_CHECK(driver == "gels" || driver == "gelsy" || driver == "gelsd" || driver == "gelss",
              "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
}

}  // namespace

LstsqResults Lstsq(const at::Tensor& a, const at::Tensor& rhs, std::optional<double> rcond,
                   std::optional<std::string_view> driver_name) {
  const std::string driver(driver_name.value_or("gelsy"));
  const bool vector = a.dim() - rhs.dim() == 1 && rhs.dim() >= 1;
  CheckArguments(a, rhs, driver, vector);
  const int64_t m = a.size(-2), n = a.size(-1);
  at::Tensor wide = vector ? rhs.unsqueeze(-1) : rhs;
  // The batches are broadcast, as on CPU.
  const auto batch = at::infer_size(a.sizes().slice(0, a.dim() - 2), wide.sizes().slice(0, wide.dim() - 2));
  auto expanded = [&](const at::Tensor& t) {
    std::vector<int64_t> sizes(batch.begin(), batch.end());
    sizes.insert(sizes.end(), t.sizes().end() - 2, t.sizes().end());
    return t.expand(sizes);
  };
  const auto real = c10::toRealValueType(a.scalar_type());
  const double eps =
      real == c10::ScalarType::Double ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const double bound = driver == "gels" ? -1.0 : rcond.value_or(eps * static_cast<double>(std::max(m, n)));
  static InternalOp& lstsq =
      *new InternalOp("tpu::lstsq(Tensor a, Tensor b, Scalar rcond) -> (Tensor, Tensor, Tensor)");
  const std::vector<at::Tensor> parts = lstsq.Run({expanded(a), expanded(wide), bound}, a.device().index());
  at::Tensor solution = parts[0].narrow(-2, 0, n);
  at::Tensor rank = driver == "gels" ? Nothing(a, c10::ScalarType::Long) : parts[1];
  at::Tensor values = driver == "gelsd" || driver == "gelss" ? parts[2] : Nothing(a, real);
  at::Tensor residuals = Nothing(a, real);
  const bool by_rank = driver == "gelsd" || driver == "gelss";
  if (m > n && driver != "gelsy" && (!by_rank || rank.eq(n).all().item<bool>())) {
    residuals = parts[0].narrow(-2, n, m - n).abs().square().sum(-2);
  }
  if (vector) solution = solution.squeeze(-1);
  return {solution, residuals, rank, values};
}

LstsqOutputs LstsqOut(const at::Tensor& a, const at::Tensor& rhs, std::optional<double> rcond,
                      std::optional<std::string_view> driver, at::Tensor& solution, at::Tensor& residuals,
                      at::Tensor& rank, at::Tensor& singular_values) {
  auto [x, left, r, s] = Lstsq(a, rhs, rcond, driver);
  auto give = [&](at::Tensor& out, const at::Tensor& result, const char* name) {
    TORCH_CHECK(c10::canCast(result.scalar_type(), out.scalar_type()), "torch.linalg.lstsq: Expected ", name,
                " to be safely castable from ", result.scalar_type(), " dtype, but got ", name, " with dtype ",
                out.scalar_type());
    const bool empty = out.numel() == 0;
    at::native::resize_output(out, result.sizes());
    if (empty && &out == &solution && result.dim() >= 2) {  // column-major, as LAPACK leaves matrices
      std::vector<int64_t> strides = out.strides().vec();
      strides.back() = result.size(-2);
      strides[strides.size() - 2] = 1;
      out.unsafeGetTensorImpl()->set_sizes_and_strides(result.sizes(), strides);
    }
    out.copy_(result);
  };
  give(solution, x, "solution");
  give(residuals, left, "residuals");
  give(rank, r, "rank");
  give(singular_values, s, "singular_values");
  return {solution, residuals, rank, singular_values};
}

}  // namespace torch_tpu
