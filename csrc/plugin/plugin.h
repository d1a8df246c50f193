// Finding and opening a PJRT plugin. This folder and runtime/ are the only ones that see the C API.
#pragma once

#include <memory>
#include <string>
#include <vector>

struct PJRT_Api;
struct PJRT_Error;

namespace torch_tpu {

// A plugin on disk, as the Python side finds it (wheels are found by package, there).
struct PluginCandidate {
  std::string name;  // "libtpu", "xla-cpu-pjrt", ... or the path itself
  std::string path;  // of the shared object
};

class Plugin {
 public:
  // dlopen, GetPjrtApi, version check, PJRT_Plugin_Initialize. Throws Error: kNotFound (no file, no symbol, with the
  // loader's text), kFailedPrecondition (API version too old or a major version that is not ours), or the plugin's own
  // error. Opening the same path again gives the same object. A libtpu is only initialised with TPU_SKIP_MDS_QUERY=1
  // unless a chip is there.
  static std::shared_ptr<const Plugin> Open(const PluginCandidate& candidate);

  const PJRT_Api* api() const { return api_; }
  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }
  int major_version() const { return major_; }
  int minor_version() const { return minor_; }
  // True when the plugin's PJRT_Api is long enough to hold the field at `offset` (offsetof) and the field is set.
  bool Has(size_t offset) const;
  std::string version_string() const;  // "0.106"
  // Finds an extension of the plugin by PJRT_Extension_Type; nullptr when absent.
  const void* Extension(int type) const;
  // Meets a foreign error: reads code and text, destroys it, throws ours ("<what>: <text>"). No-op on nullptr.
  void ThrowIfError(PJRT_Error* error, const char* what) const;

 private:
  Plugin() = default;
  std::string name_, path_;
  const PJRT_Api* api_ = nullptr;
  int major_ = 0, minor_ = 0;
};

// TPU chips on this host (PCI vendor 0x1ae0 with a known device id, or /dev/vfio, /dev/accel*): count. Reads files
// only.
int CountTpuChips();

}  // namespace torch_tpu
