// Copies: between host and device, between devices, across dtypes and strides.
#include "dispatch/copy.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "device/context.h"
#include "device/queue.h"
#include "device/torch_error.h"
#include "dispatch/bound_op.h"
#include "dispatch/dtype_map.h"
#include "dispatch/errors.h"
#include "dispatch/mode.h"
#include "dispatch/tensors.h"

namespace torch_tpu {
namespace {

// Waits without the GIL where a caller of the C++ API still holds it: see bindings; kernels are called without it.
at::Tensor HostTensor(c10::ScalarType dtype, c10::IntArrayRef sizes) {
  return at::empty(sizes, at::TensorOptions().dtype(dtype).device(at::kCPU));
}

BufferPtr Upload(const at::Tensor& host, int device) {
  const DType dtype = CheckedDType(host.scalar_type(), "copy_");
  const at::Tensor dense = host.contiguous();
  DeviceContext& context = DeviceContext::Get();
  return context.client().FromHost(context.device(device), dense.const_data_ptr(),
                                   TensorType{dtype, Dims(dense.sizes().begin(), dense.sizes().end())});
}

// Storage order of a dense tensor as a permuted contiguous one: host memory laid out as the device will hold it.
at::Tensor InStorageOrder(const at::Tensor& host, const at::Tensor& like) {
  const std::optional<Dims> order = DenseOrder(like.sizes(), like.strides());
  return order ? host.permute(*order) : host;
}

// Same device: a value that fills the destination and is stored alike is shared, not copied (values are immutable).
bool ShareValue(const at::Tensor& self, const at::Tensor& src) {
  if (self.scalar_type() != src.scalar_type() || self.sizes() != src.sizes() || self.strides() != src.strides())
    return false;
  StorageContext& to = ContextOf(*self.unsafeGetTensorImpl());
  StorageContext& from = ContextOf(*src.unsafeGetTensorImpl());
  std::lock_guard lock(Queue::Of(self.device().index()).mutex());
  if (!FillsStorage(*self.unsafeGetTensorImpl(), to) || !FillsStorage(*src.unsafeGetTensorImpl(), from)) return false;
  if (BaseType(from) != nullptr && BaseType(from)->bytes() != from.nbytes) return false;
  to.value = from.value;
  to.pending = from.pending;
  return true;
}

void CopyOnDevice(const at::Tensor& self, const at::Tensor& src) {
  if (ShareValue(self, src)) return;
  static InternalOp& copy = *new InternalOp("tpu::identity.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)");
  copy.Run({src, self}, self.device().index());
}

void CopyFromHost(const at::Tensor& self, const at::Tensor& src) {
  const int device = self.device().index();
  // The cast is PyTorch's own, on the host: no value depends on where it is done.
  at::Tensor host = src.to(self.scalar_type()).expand(self.sizes());
  StorageContext& context = ContextOf(*self.unsafeGetTensorImpl());
  bool fills = false;
  {
    std::lock_guard lock(Queue::Of(device).mutex());
    fills = FillsStorage(*self.unsafeGetTensorImpl(), context);
  }
  if (fills) {
    BufferPtr value = Upload(InStorageOrder(host, self), device);
    std::lock_guard lock(Queue::Of(device).mutex());
    SetValue(context, std::move(value));
    return;
  }
  CopyOnDevice(self, WrapBuffer(Upload(host, device), self.scalar_type()));
}

void CopyToHost(const at::Tensor& self, const at::Tensor& src) {
  if (src.numel() == 0) return;
  const BufferPtr value = WithTorchErrors([&] {  // of the op that fails, not of this copy
    BufferPtr dense = DenseValue(src);
    AwaitInterruptibly(*dense);
    return dense;
  });
  if (self.is_contiguous() && self.scalar_type() == src.scalar_type() && self.sizes() == src.sizes()) {
    value->ToHost(self.mutable_data_ptr());
    return;
  }
  at::Tensor host = HostTensor(src.scalar_type(), src.sizes());
  value->ToHost(host.mutable_data_ptr());
  self.copy_(host);
}

void CopyAcross(const at::Tensor& self, const at::Tensor& src) {
  const BufferPtr value = DenseValue(src);
  CopyOnDevice(self, WrapBuffer(value->CopyTo(DeviceContext::Get().device(self.device().index())), src.scalar_type()));
}

}  // namespace

at::Tensor& Copy(at::Tensor& self, const at::Tensor& src_given, bool non_blocking) {
  TORCH_CHECK(self.defined() && src_given.defined(), "copy_: expected two tensors, got an undefined one");
  if (self.is_same(src_given)) return self;
  TORCH_CHECK(!src_given.is_sparse() && !self.is_sparse(), "copy_: expected dense tensors, got a sparse one");
  CheckedDType(self.scalar_type(), "copy_");
  CheckedDType(src_given.scalar_type(), "copy_");
  if (self.numel() == 0 && src_given.sizes() == self.sizes()) return self;
  // Conjugate and negative views are marks on the tensor; the plain values move, then the difference of marks is
  // applied.
  const bool conjugate = self.is_conj() != src_given.is_conj() && (self.is_complex() || src_given.is_complex());
  const bool negate = self.is_neg() != src_given.is_neg();
  at::Tensor src = src_given, dst = self;
  if (src.is_conj() || src.is_neg()) {
    src = src.alias();
    src._set_conj(false);
    src._set_neg(false);
  }
  if (dst.is_conj() || dst.is_neg()) {
    dst = dst.alias();
    dst._set_conj(false);
    dst._set_neg(false);
  }
  Translated("copy_", [&] {
    src = *at::expand_size(src, self.sizes(), "copy_");
    if (self.numel() == 0) return;
    if (!IsTpu(dst)) {
      CopyToHost(dst, src);
    } else if (!IsTpu(src)) {
      TORCH_CHECK(src.is_cpu(), "copy_: expected a source on cpu or tpu, got ", src.device());
      CopyFromHost(dst, src);
    } else if (dst.device() == src.device()) {
      CopyOnDevice(dst, src);
    } else {
      CopyAcross(dst, src);
    }
  });
  if (conjugate) dst.conj_physical_();
  if (negate) dst.neg_();
  return self;
}

at::Tensor CopyFrom(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  at::Tensor out = dst;
  return Copy(out, self, non_blocking);
}

at::Tensor CopyFromAndResize(const at::Tensor& self, const at::Tensor& dst) {
  dst.resize_(self.sizes());
  return CopyFrom(self, dst, false);
}

at::Scalar LocalScalarDense(const at::Tensor& self) {
  TORCH_CHECK(self.numel() > 0, "_local_scalar_dense: Empty tensor not supported");
  at::Tensor host = HostTensor(self.scalar_type(), {});
  CopyToHost(host, self.dim() == 0 ? self : self.reshape({-1})[0]);
  return host.item();
}

}  // namespace torch_tpu
