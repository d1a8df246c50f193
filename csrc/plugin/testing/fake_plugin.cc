// A PJRT plugin that fails in the one way its build names.
#include <cstring>

#include "pjrt_c_api.h"

struct PJRT_Error {
  const char* text;
  PJRT_Error_Code code;
};

namespace {

constexpr char kText[] = "the accelerator is on fire";
PJRT_Error fire = {kText, PJRT_Error_Code_UNAVAILABLE};

void DestroyError(PJRT_Error_Destroy_Args*) {}
void ErrorMessage(PJRT_Error_Message_Args* args) {
  args->message = args->error->text;
  args->message_size = std::strlen(args->error->text);
}
PJRT_Error* ErrorCode(PJRT_Error_GetCode_Args* args) {
  args->code = args->error->code;
  return nullptr;
}
PJRT_Error* Initialize(PJRT_Plugin_Initialize_Args*) {
#ifdef FAULT_NO_INITIALIZE
  return &fire;
#else
  return nullptr;
#endif
}
PJRT_Error* CreateClient(PJRT_Client_Create_Args*) { return &fire; }
PJRT_Error* Compile(PJRT_Compile_Args*) { return &fire; }

[[maybe_unused]] PJRT_Api MakeApi() {
  PJRT_Api api{};
  api.struct_size = PJRT_Api_STRUCT_SIZE;
  api.pjrt_api_version.struct_size = PJRT_Api_Version_STRUCT_SIZE;
  api.pjrt_api_version.major_version = PJRT_API_MAJOR;
  api.pjrt_api_version.minor_version = PJRT_API_MINOR;
  api.PJRT_Error_Destroy = DestroyError;
  api.PJRT_Error_Message = ErrorMessage;
  api.PJRT_Error_GetCode = ErrorCode;
  api.PJRT_Plugin_Initialize = Initialize;
  api.PJRT_Client_Create = CreateClient;
  api.PJRT_Compile = Compile;
#ifdef FAULT_OLD_API
  api.pjrt_api_version.minor_version = 12;
#endif
#ifdef FAULT_OTHER_MAJOR
  api.pjrt_api_version.major_version = 1;
#endif
#ifdef FAULT_SHORT_TABLE
  api.struct_size = offsetof(PJRT_Api, PJRT_Client_Create);
#endif
  return api;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
#ifdef FAULT_NO_TABLE
  return nullptr;
#else
  static const PJRT_Api api = MakeApi();
  return &api;
#endif
}
