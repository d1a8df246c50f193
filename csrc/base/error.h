// The one exception type of the torch-free folders.
//
// `base` to `lowering` report a failure by throwing `Error`: emit functions are nested expressions, and a status in
// every return type would hide them. `dispatch` and `bindings` turn an `Error` into PyTorch's exception types.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace torch_tpu {

// Follows absl's canonical codes (the numbers PJRT uses).
enum class Code {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
};

class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

// Concatenates `parts` with operator<<.
template <class... Parts>
std::string Cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
[[noreturn]] void Fail(Code code, const Parts&... parts) {
  throw Error(code, Cat(parts...));
}

// Throws kInvalidArgument with `parts` when `condition` is false. The parts are only formatted on failure.
template <class... Parts>
inline void Check(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]] {
    Fail(Code::kInvalidArgument, parts...);
  }
}

}  // namespace torch_tpu
