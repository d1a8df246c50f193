// Special functions that StableHLO has no op for, as polynomials fitted for this file. Operands are float32 or float64.
#pragma once

#include "program/builder.h"

namespace torch_tpu {

Value Erf(Builder& b, Value x);
Value Erfc(Builder& b, Value x);    // small relative error in the tail too
Value Erfcx(Builder& b, Value x);   // e^(x^2) erfc(x)
Value Erfinv(Builder& b, Value x);  // infinite at -1 and 1, NaN outside
Value Lgamma(Builder& b, Value x);  // log |gamma(x)|
Value Digamma(Builder& b, Value x);

}  // namespace torch_tpu
