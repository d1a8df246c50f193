// What a host kernel sees of its call, and the tables of kernels.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "plugin/ffi.h"

namespace torch_tpu {

class HostCall {
 public:
  explicit HostCall(const FfiCall& call) : call_(call), numbers_(call.ints("numbers")) {}
  // CPU tensors on the plugin's memory, no copy: good until the kernel returns. Arguments are only read.
  at::Tensor argument(size_t i) const;
  size_t num_arguments() const { return call_.num_arguments(); }
  size_t num_results() const { return call_.num_results(); }
  at::Tensor result(size_t i) const;
  // Result `i` gets the elements of `value`, of equal sizes, in row-major order.
  void Store(size_t i, const at::Tensor& value) const;

  int64_t number(size_t i) const;
  c10::IntArrayRef numbers(size_t first, size_t count) const;

 private:
  const FfiCall& call_;
  std::span<const int64_t> numbers_;
};

struct HostKernel {
  const char* name;
  FfiHandler handler;
};

std::span<const HostKernel> ConvolutionKernels();  // convolution.cc
std::span<const HostKernel> LinalgKernels();       // linalg.cc
std::span<const HostKernel> OrderKernels();        // order.cc
std::span<const HostKernel> IndexKernels();        // indices.cc

// Counts a run of `kernel` and keeps the thread's dispatcher state away from it.
void RunHostKernel(const char* name, void (*kernel)(const HostCall&), const FfiCall& call);

}  // namespace torch_tpu

// A handler's row: the kernel's name in programs and its function.
#define TORCH_TPU_HOST_KERNEL(name, kernel)                             \
  ::torch_tpu::HostKernel {                                             \
    name, ::torch_tpu::HandlerOf<[](const ::torch_tpu::FfiCall& call) { \
      ::torch_tpu::RunHostKernel(name, kernel, call);                   \
    }>                                                                  \
  }
