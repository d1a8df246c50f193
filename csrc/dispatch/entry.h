// What a key leads to: an executable and what to do with its results.
#pragma once

#include <c10/core/ScalarType.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/graph.h"
#include "runtime/runtime.h"

namespace torch_tpu {

struct KeyHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

struct Entry {
  // A functional result.
  struct Result {
    int output = -1;  // of the executable; -1: an absent tensor
    c10::ScalarType dtype = c10::ScalarType::Undefined;
    Dims sizes, strides;
    bool contiguous = true;
  };
  // Output `output` becomes the value of the storage behind the walk's tensor use `use`.
  struct Store {
    int use = -1, output = -1;
  };
  // out= arguments that must be resized before the op can run: the call starts again after it.
  struct Resize {
    size_t argument = 0;
    Dims sizes, strides;
  };

  // The op with its view reads and writes, and the types of its outputs: what fused mode records.
  Graph graph;
  std::vector<TensorType> outputs;
  bool precise = false;  // holds products, whose precision is the program's
  // Strict mode's; null when nothing needs to run, or when only fused mode has met the key so far.
  std::shared_ptr<Executable> executable;
  std::vector<Result> results;
  std::vector<Store> stores;
  std::vector<std::pair<int, int>> aliases;  // (input, index into stores): memory that may be reused
  std::vector<Resize> resizes;
};

}  // namespace torch_tpu
