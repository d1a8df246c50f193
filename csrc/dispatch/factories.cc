// Factories: sizes are decided on the host (by PyTorch's own meta kernels), values by programs.
#include "dispatch/factories.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/zeros.h>

#include "device/current.h"
#include "dispatch/bound_op.h"
#include "dispatch/tensors.h"

namespace torch_tpu {
namespace {

int64_t TypeArg(const at::Tensor& out) { return static_cast<int64_t>(out.scalar_type()); }

// PyTorch reads the ends of an integer range as integers.
at::Scalar AsNumberOf(const at::Tensor& out, const at::Scalar& number) {
  return c10::isIntegralType(out.scalar_type(), false) ? at::Scalar(number.toLong()) : number;
}

at::Tensor TriangleIndices(InternalOp& op, int64_t row, int64_t col, int64_t offset,
                           std::optional<at::ScalarType> dtype, std::optional<at::Device> device) {
  TORCH_CHECK(row >= 0, "row must be non-negative, got", row);
  TORCH_CHECK(col >= 0, "col must be non-negative, got", col);
  const auto type = static_cast<int64_t>(dtype.value_or(at::ScalarType::Long));
  const c10::DeviceIndex index = device && device->has_index() ? device->index() : CurrentDevice();
  return op.Run({row, col, offset, type}, index)[0];
}

at::Tensor& Run(InternalOp& op, torch::jit::Stack arguments, at::Tensor& out) {
  arguments.emplace_back(out);
  op.Run(std::move(arguments), out.device().index());
  return out;
}

}  // namespace

at::Tensor& ArangeOut(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  at::Tensor meta = at::detail::empty_strided_meta({0}, {1}, out.scalar_type());
  at::arange_out(meta, start, end, step);
  if (out.numel() != meta.numel()) at::native::resize_output(out, meta.sizes());
  static InternalOp& iota = *new InternalOp(
      "tpu::iota.out(Scalar start, Scalar step, int length, ScalarType dtype, *, Tensor(a!) out) -> Tensor(a!)");
  if (out.numel() == 0) return out;
  return Run(iota, {AsNumberOf(out, start), AsNumberOf(out, step), out.numel(), TypeArg(out)}, out);
}

at::Tensor& LinspaceOut(const at::Scalar& start, const at::Scalar& end, int64_t steps, at::Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps) at::native::resize_output(out, {steps});
  static InternalOp& linspace = *new InternalOp(
      "tpu::linspace.out(Scalar start, Scalar end, int steps, ScalarType dtype, *, Tensor(a!) out) -> Tensor(a!)");
  if (steps == 0) return out;
  return Run(linspace, {start, end, steps, TypeArg(out)}, out);
}

at::Tensor& LogspaceOut(const at::Scalar& start, const at::Scalar& end, int64_t steps, double base, at::Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps) at::native::resize_output(out, {steps});
  if (steps == 0) return out;
  // Powers of integers in floats, as on CPU, and in the wider type, so that whole results stay whole.
  const bool complex = out.is_complex();
  const auto type = complex ? out.scalar_type() : at::ScalarType::Double;
  at::Tensor exponents = at::linspace(start, end, steps, out.options().dtype(type));
  return out.copy_(at::pow(at::Scalar(base), exponents).view(out.sizes()));
}

at::Tensor& EyeOut(int64_t n, int64_t m, at::Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  TORCH_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  at::native::resize_output(out, {n, m});
  static InternalOp& eye =
      *new InternalOp("tpu::eye.out(int n, int m, ScalarType dtype, *, Tensor(a!) out) -> Tensor(a!)");
  if (out.numel() == 0) return out;
  return Run(eye, {n, m, TypeArg(out)}, out);
}

// Plain zeros, which cost no more here than a tensor that is only known to be zero.
at::Tensor EfficientZeroTensor(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
                               std::optional<at::Layout> layout, std::optional<at::Device> device,
                               std::optional<bool> pin_memory) {
  return at::zeros(C10_AS_INTARRAYREF_SLOW(size), dtype, layout, device, pin_memory);
}

at::Tensor& RandpermOut(int64_t n, std::optional<at::Generator> generator, at::Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  at::native::resize_output(out, {n});
  static InternalOp& randperm = *new InternalOp(
      "tpu::randperm.out(int n, ScalarType dtype, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)");
  if (n == 0) return out;
  torch::jit::Stack arguments{n, TypeArg(out)};
  arguments.push_back(generator && generator->defined() ? c10::IValue(*generator) : c10::IValue());
  return Run(randperm, std::move(arguments), out);
}

at::Tensor TrilIndices(int64_t row, int64_t col, int64_t offset, std::optional<at::ScalarType> dtype,
                       std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  static InternalOp& op =
      *new InternalOp("tpu::tril_indices(int row, int col, int offset, ScalarType dtype) -> Tensor");
  return TriangleIndices(op, row, col, offset, dtype, device);
}

at::Tensor TriuIndices(int64_t row, int64_t col, int64_t offset, std::optional<at::ScalarType> dtype,
                       std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  static InternalOp& op =
      *new InternalOp("tpu::triu_indices(int row, int col, int offset, ScalarType dtype) -> Tensor");
  return TriangleIndices(op, row, col, offset, dtype, device);
}

}  // namespace torch_tpu
