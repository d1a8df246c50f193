#include "dispatch/scalar_checks.h"

#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>

namespace torch_tpu {
namespace {

double Number(const torch::jit::Stack& stack, size_t at) { return stack[at].toScalar().toDouble(); }

void Bernoulli(const torch::jit::Stack& stack, size_t begin) {
  const double p = Number(stack, begin + 1);
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
}

void Normal(const torch::jit::Stack& stack, size_t begin) {
  const double std = Number(stack, begin + 2);
  TORCH_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
}

void LogNormal(const torch::jit::Stack& stack, size_t begin) {
  const double std = Number(stack, begin + 2);
  TORCH_CHECK(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
}

void Uniform(const torch::jit::Stack& stack, size_t begin) {
  const double from = Number(stack, begin + 1), to = Number(stack, begin + 2);
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
}

void Exponential(const torch::jit::Stack& stack, size_t begin) {
  const double lambda = Number(stack, begin + 1);
  TORCH_CHECK(lambda > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
}

void Geometric(const torch::jit::Stack& stack, size_t begin) {
  const double p = Number(stack, begin + 1);
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
}

void Cauchy(const torch::jit::Stack& stack, size_t begin) {
  const double sigma = Number(stack, begin + 2);
  TORCH_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
}

void IntegerPower(const torch::jit::Stack& stack, size_t begin) {
  const c10::IValue& exponent = stack[begin + 1];
  TORCH_CHECK(!(exponent.isInt() && exponent.toInt() < 0 &&
                c10::isIntegralType(stack[begin].toTensor().scalar_type(), /*includeBool=*/true)),
              "Integers to negative integer powers are not allowed.");
}

struct Row {
  std::string_view name;
  ScalarCheck check;
};

constexpr Row kRows[] = {{"bernoulli.p", Bernoulli}, {"normal_functional", Normal},      {"log_normal", LogNormal},
                         {"uniform", Uniform},       {"exponential", Exponential},       {"geometric", Geometric},
                         {"cauchy", Cauchy},         {"pow.Tensor_Scalar", IntegerPower}};

}  // namespace

ScalarCheck ScalarCheckOf(std::string_view row) {
  for (const Row& candidate : kRows) {
    if (candidate.name == row) return candidate.check;
  }
  return nullptr;
}

}  // namespace torch_tpu
