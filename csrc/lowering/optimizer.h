// What the optimizer files share.
#pragma once

#include "lowering/table.h"
#include "program/builder.h"
#include "program/op_call.h"

namespace torch_tpu {

// optimizer_foreach.cc. The row's own name says which single-tensor row is applied to the elements.
Values EmitForeach(Builder& b, const Args& a);
Values EmitForeachUnary(Builder& b, const Args& a);
Values EmitForeachNorm(Builder& b, const Args& a);
Values EmitForeachZero(Builder& b, const Args& a);
Values EmitForeachClone(Builder& b, const Args& a);
Values EmitForeachCopy(Builder& b, const Args& a);

}  // namespace torch_tpu
