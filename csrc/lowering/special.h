// Sub-families of SpecialRows.
#pragma once

#include <span>

#include "lowering/table.h"

namespace torch_tpu {

std::span<const OpRow> BesselRows();      // special_bessel.cc
std::span<const OpRow> PolynomialRows();  // special_polynomial.cc
std::span<const OpRow> GammaRows();       // special_gamma.cc

}  // namespace torch_tpu
