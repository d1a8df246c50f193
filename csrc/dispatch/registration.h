// Registration of the lowering table's rows with the dispatcher.
#pragma once

#include <string>
#include <vector>

namespace torch_tpu {

// Registers the table's rows; once, at load.
void RegisterRows();
// Rows that could not be registered and why: empty in a sound build (a test checks it).
const std::vector<std::string>& RegistrationProblems();
// Overloads served by rows, without "aten::".
const std::vector<std::string>& RegisteredOps();
}  // namespace torch_tpu
