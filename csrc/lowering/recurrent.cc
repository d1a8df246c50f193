// The fused cells of LSTM and GRU, which PyTorch's recurrent modules call on devices of this kind.
#include "base/error.h"
#include "lowering/activation.h"
#include "lowering/elementwise.h"

namespace torch_tpu {

namespace {

// Column block k of x's equal blocks.
Value Block(Builder& b, Value x, int64_t k, int64_t width) { return b.SliceDim(x, 1, k * width, (k + 1) * width); }

Value WithBias(Builder& b, Value x, Value bias) {
  return bias ? b.Add(x, b.BroadcastTo(ToCompute(b, bias), x.dims())) : x;
}

// dy * y (1 - y) and dy * (1 - y^2): through the logistic function and tanh, from their results.
Value ThroughSigmoid(Builder& b, Value dy, Value y) { return b.Multiply(dy, b.Multiply(y, SubFrom(b, 1, y))); }
Value ThroughTanh(Builder& b, Value dy, Value y) { return b.Multiply(dy, SubFrom(b, 1, b.Multiply(y, y))); }

Value ColumnSums(Builder& b, Value x, bool wanted) { return wanted ? Sum(b, x, {0}) : Value(); }

Values Rounded(Builder& b, Values xs, DType dtype) {
  for (Value& x : xs) {
    if (x) x = b.Convert(x, dtype);
  }
  return xs;
}

// input_gates, hidden_gates [n, 4 h], cx, input_bias, hidden_bias -> hy, cy, the gates after their functions
Values Lstm(Builder& b, const Args& a) {
  const DType dtype = a.tensor(0).dtype();
  Value gates = WithBias(b, ToCompute(b, a.tensor(0)), a.tensor_or_absent(3));
  gates = b.Add(gates, WithBias(b, ToCompute(b, a.tensor(1)), a.tensor_or_absent(4)));
  Value cx = ToCompute(b, a.tensor(2));
  const int64_t h = cx.dim(1);
  Check(gates.dim(1) == 4 * h, "_thnn_fused_lstm_cell: expected gates of ", 4 * h, " columns, got ", gates.dim(1));
  Value in = Sigmoid(b, Block(b, gates, 0, h)), forget = Sigmoid(b, Block(b, gates, 1, h));
  Value cell = b.Tanh(Block(b, gates, 2, h)), out = Sigmoid(b, Block(b, gates, 3, h));
  Value cy = b.Add(b.Multiply(forget, cx), b.Multiply(in, cell));
  return Rounded(b, {b.Multiply(out, b.Tanh(cy)), cy, b.Concatenate({in, forget, cell, out}, 1)}, dtype);
}

// grad_hy, grad_cy, cx, cy, workspace, has_bias -> gradients of gates, cx, bias
Values LstmBackward(Builder& b, const Args& a) {
  const DType dtype = a.tensor(4).dtype();
  Value cx = ToCompute(b, a.tensor(2)), cy = ToCompute(b, a.tensor(3)), saved = ToCompute(b, a.tensor(4));
  const int64_t h = cx.dim(1);
  Value in = Block(b, saved, 0, h), forget = Block(b, saved, 1, h), cell = Block(b, saved, 2, h),
        out = Block(b, saved, 3, h), turned = b.Tanh(cy);
  Value grad_h = a.has(0) ? ToCompute(b, a.tensor(0)) : Full(b, cy, 0);
  Value grad_c = ThroughTanh(b, b.Multiply(grad_h, out), turned);
  if (a.has(1)) grad_c = b.Add(grad_c, ToCompute(b, a.tensor(1)));
  Value gates =
      b.Concatenate({ThroughSigmoid(b, b.Multiply(grad_c, cell), in), ThroughSigmoid(b, b.Multiply(grad_c, cx), forget),
                     ThroughTanh(b, b.Multiply(grad_c, in), cell), ThroughSigmoid(b, b.Multiply(grad_h, turned), out)},
                    1);
  return Rounded(b, {gates, b.Multiply(grad_c, forget), ColumnSums(b, gates, a.flag(5))}, dtype);
}

// input_gates, hidden_gates [n, 3 h], hx, input_bias, hidden_bias -> hy, what the gradient needs [n, 5 h]
Values Gru(Builder& b, const Args& a) {
  const DType dtype = a.tensor(0).dtype();
  Value x = WithBias(b, ToCompute(b, a.tensor(0)), a.tensor_or_absent(3));
  Value y = WithBias(b, ToCompute(b, a.tensor(1)), a.tensor_or_absent(4)), hx = ToCompute(b, a.tensor(2));
  const int64_t h = hx.dim(1);
  Check(x.dim(1) == 3 * h, "_thnn_fused_gru_cell: expected gates of ", 3 * h, " columns, got ", x.dim(1));
  Value reset = Sigmoid(b, b.Add(Block(b, x, 0, h), Block(b, y, 0, h)));
  Value update = Sigmoid(b, b.Add(Block(b, x, 1, h), Block(b, y, 1, h)));
  Value hidden = Block(b, y, 2, h);
  Value fresh = b.Tanh(b.Add(Block(b, x, 2, h), b.Multiply(reset, hidden)));
  Value hy = b.Add(fresh, b.Multiply(update, b.Subtract(hx, fresh)));
  return Rounded(b, {hy, b.Concatenate({reset, update, fresh, hx, hidden}, 1)}, dtype);
}

// grad_hy, workspace, has_bias -> gradients of input_gates, hidden_gates, hx, input_bias, hidden_bias
Values GruBackward(Builder& b, const Args& a) {
  const DType dtype = a.tensor(1).dtype();
  Value grad = ToCompute(b, a.tensor(0)), saved = ToCompute(b, a.tensor(1));
  const int64_t h = grad.dim(1);
  Value reset = Block(b, saved, 0, h), update = Block(b, saved, 1, h), fresh = Block(b, saved, 2, h),
        hx = Block(b, saved, 3, h), hidden = Block(b, saved, 4, h);
  Value of_fresh = ThroughTanh(b, b.Multiply(grad, SubFrom(b, 1, update)), fresh);
  Value of_update = ThroughSigmoid(b, b.Multiply(grad, b.Subtract(hx, fresh)), update);
  Value of_reset = ThroughSigmoid(b, b.Multiply(of_fresh, hidden), reset);
  Value input = b.Concatenate({of_reset, of_update, of_fresh}, 1);
  Value state = b.Concatenate({of_reset, of_update, b.Multiply(of_fresh, reset)}, 1);
  const bool bias = a.flag(2);
  return Rounded(b, {input, state, b.Multiply(grad, update), ColumnSums(b, input, bias), ColumnSums(b, state, bias)},
                 dtype);
}

constexpr OpRow kRows[] = {
    {"_thnn_fused_lstm_cell", Lstm},
    {"_thnn_fused_lstm_cell_backward_impl", LstmBackward},
    {"_thnn_fused_gru_cell", Gru},
    {"_thnn_fused_gru_cell_backward", GruBackward},
};

}  // namespace

std::span<const OpRow> RecurrentRows() { return kRows; }

}  // namespace torch_tpu
