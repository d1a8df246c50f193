#include "plugin/plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>

#include "base/env.h"
#include "plugin/call.h"

namespace torch_tpu {
namespace {

constexpr int kMajor = PJRT_API_MAJOR;
// Older tables lack fields this runtime reads (compiled memory statistics, topology of a client).
constexpr int kOldestMinor = 40;
constexpr char kAdvice[] =
    "install a newer plugin (pip install -U fastatomstruct-xla-cpu for CPU, libtpu for a TPU) or name another in "
    "TORCH_TPU_PLUGIN";

bool IsLibtpu(const PluginCandidate& candidate) {
  return candidate.name == "libtpu" || std::filesystem::path(candidate.path).filename().string().starts_with("libtpu");
}

const PJRT_Api* LoadApi(const PluginCandidate& candidate) {
  ::dlerror();
  // Local, so that two plugins in one process keep their own copies of LLVM and XLA. Never closed: their threads live
  // on.
  void* library = ::dlopen(candidate.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* text = ::dlerror();
    Fail(Code::kNotFound, "plugin ", candidate.name, ": cannot open ", candidate.path, ": ",
         text != nullptr ? text : "unknown loader error");
  }
  using GetApi = const PJRT_Api* (*)();
  auto get_api = reinterpret_cast<GetApi>(::dlsym(library, "GetPjrtApi"));
  if (get_api == nullptr) {
    const char* text = ::dlerror();
    Fail(Code::kNotFound, "plugin ", candidate.name, ": ", candidate.path,
         " is not a PJRT plugin (no GetPjrtApi): ", text != nullptr ? text : "symbol is null");
  }
  const PJRT_Api* api = get_api();
  if (api == nullptr) {
    Fail(Code::kFailedPrecondition, "plugin ", candidate.name, ": ", candidate.path, " gave no PJRT API");
  }
  return api;
}

struct Opened {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const Plugin>> by_path;
};

// Never destroyed: whoever is last to use a plugin may run after static destructors.
Opened& AllOpened() {
  static auto* opened = new Opened;
  return *opened;
}

}  // namespace

std::shared_ptr<const Plugin> Plugin::Open(const PluginCandidate& candidate) {
  std::error_code ignored;
  std::string key = std::filesystem::canonical(candidate.path, ignored).string();
  if (ignored) key = candidate.path;

  Opened& opened = AllOpened();
  std::lock_guard lock(opened.mutex);
  if (auto found = opened.by_path.find(key); found != opened.by_path.end()) return found->second;

  // Without a chip libtpu asks a metadata server that is not there, for minutes.
  if (IsLibtpu(candidate) && CountTpuChips() == 0) env::SetDefault("TPU_SKIP_MDS_QUERY", "1");
  // A CPU plugin prints a very long line about CPU features, at error level, for each program it loads from the cache.
  env::SetDefault("TF_CPP_MIN_LOG_LEVEL", "3");

  std::shared_ptr<Plugin> plugin(new Plugin);
  plugin->name_ = candidate.name;
  plugin->path_ = candidate.path;
  plugin->api_ = LoadApi(candidate);
  plugin->major_ = plugin->api_->pjrt_api_version.major_version;
  plugin->minor_ = plugin->api_->pjrt_api_version.minor_version;
  if (plugin->major_ != kMajor || plugin->minor_ < kOldestMinor) {
    Fail(Code::kFailedPrecondition, "plugin ", candidate.name, ": expected PJRT API ", kMajor, ".", kOldestMinor,
         " or newer within major version ", kMajor, ", got ", plugin->version_string(), " in ", candidate.path, "; ",
         kAdvice);
  }
  if (!torch_tpu::Has(*plugin, &PJRT_Api::PJRT_Compile) ||
      !torch_tpu::Has(*plugin, &PJRT_Api::PJRT_Plugin_Initialize)) {
    Fail(Code::kFailedPrecondition, "plugin ", candidate.name, ": its function table is too short (",
         plugin->api_->struct_size, " bytes) in ", candidate.path, "; ", kAdvice);
  }
  auto args = PJRT_ARGS(PJRT_Plugin_Initialize);
  Call(*plugin, &PJRT_Api::PJRT_Plugin_Initialize, args,
       Cat("plugin ", candidate.name, ": initialisation failed").c_str());
  opened.by_path.emplace(std::move(key), plugin);
  return plugin;
}

bool Plugin::Has(size_t offset) const {
  if (offset + sizeof(void*) > api_->struct_size) return false;
  return *reinterpret_cast<void* const*>(reinterpret_cast<const char*>(api_) + offset) != nullptr;
}

std::string Plugin::version_string() const { return Cat(major_, ".", minor_); }

const void* Plugin::Extension(int type) const {
  for (const PJRT_Extension_Base* extension = api_->extension_start; extension != nullptr;
       extension = extension->next) {
    if (static_cast<int>(extension->type) == type) return extension;
  }
  return nullptr;
}

void Plugin::ThrowIfError(PJRT_Error* error, const char* what) const {
  if (error == nullptr) return;
  auto message = PJRT_ARGS(PJRT_Error_Message);
  message.error = error;
  api_->PJRT_Error_Message(&message);
  std::string text = Cat(what, ": ", std::string(message.message, message.message_size));

  Code code = Code::kUnknown;
  auto get_code = PJRT_ARGS(PJRT_Error_GetCode);
  get_code.error = error;
  // Asking for the code may itself fail; the text is what matters then.
  if (PJRT_Error* second = api_->PJRT_Error_GetCode(&get_code)) {
    auto destroy = PJRT_ARGS(PJRT_Error_Destroy);
    destroy.error = second;
    api_->PJRT_Error_Destroy(&destroy);
  } else if (get_code.code == PJRT_Error_Code_UNAUTHENTICATED) {
    code = Code::kPermissionDenied;
  } else if (get_code.code >= PJRT_Error_Code_CANCELLED && get_code.code <= PJRT_Error_Code_DATA_LOSS) {
    code = static_cast<Code>(get_code.code);
  }
  auto destroy = PJRT_ARGS(PJRT_Error_Destroy);
  destroy.error = error;
  api_->PJRT_Error_Destroy(&destroy);
  throw Error(code, text);
}

}  // namespace torch_tpu
