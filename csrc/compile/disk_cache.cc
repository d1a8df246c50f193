#include "compile/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/env.h"
#include "compile/hash.h"

namespace torch_tpu {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "TORCHTPU";
constexpr uint32_t kVersion = 1;
constexpr std::string_view kSuffix = ".executable";
constexpr std::string_view kTemporary = ".writing-";
// A few files serve all keys: they stay, since removing a lock file that somebody waits for would make two of it.
constexpr std::string_view kLock = ".lock-";
constexpr uint64_t kNumLocks = 256;
constexpr auto kLongestWait = std::chrono::minutes(5);

template <class Number>
void Append(std::string* out, Number number) {
  out->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Takes a number off the front; false when the bytes run out.
template <class Number>
bool Take(std::string_view* bytes, Number* number) {
  if (bytes->size() < sizeof(Number)) return false;
  std::memcpy(number, bytes->data(), sizeof(Number));
  bytes->remove_prefix(sizeof(Number));
  return true;
}

bool TakeText(std::string_view* bytes, std::string_view expected) {
  if (!bytes->starts_with(expected)) return false;
  bytes->remove_prefix(expected.size());
  return true;
}

std::string Header(const std::string& key) {
  std::string header(kMagic);
  Append(&header, kVersion);
  Append(&header, static_cast<uint64_t>(key.size()));
  header += key;
  return header;
}

bool ReadFile(const std::string& path, std::string* content) {
  std::error_code error;
  // A folder can be opened too, and has a length of its own kind.
  if (!fs::is_regular_file(path, error)) return false;
  const auto size = fs::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return false;
  content->resize(size);
  file.read(content->data(), static_cast<std::streamsize>(size));
  return file.good();
}

struct Entry {
  fs::path path;
  fs::file_time_type used;
  int64_t bytes;
};

// Entries, and temporary files that a killed process has left.
std::vector<Entry> ListEntries(const std::string& folder, std::vector<fs::path>* stale) {
  std::vector<Entry> entries;
  if (folder.empty()) return entries;
  const auto now = fs::file_time_type::clock::now();
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;  // another process may be evicting
    const auto used = it->last_write_time(gone);
    if (gone) continue;
    const std::string name = it->path().filename().string();
    if (name.ends_with(kSuffix)) {
      const auto bytes = it->file_size(gone);
      if (!gone) entries.push_back({it->path(), used, static_cast<int64_t>(bytes)});
    } else if (stale != nullptr && name.starts_with(kTemporary) && now - used > std::chrono::hours(1)) {
      stale->push_back(it->path());
    }
  }
  return entries;
}

}  // namespace

DiskCache::DiskCache(std::string folder, int64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes), written_since_eviction_(max_bytes) {}

DiskCache::DiskCache(DiskCache&& other) noexcept
    : folder_(std::move(other.folder_)),
      max_bytes_(other.max_bytes_),
      written_since_eviction_(other.written_since_eviction_.load()) {}

DiskCache DiskCache::FromEnv() {
  const int64_t max_bytes = env::Int(env::Var::kCacheMaxBytes).value_or(0);
  if (!env::Flag(env::Var::kCache) || max_bytes <= 0) return DiskCache("", 0);
  if (auto folder = env::Get(env::Var::kCacheDir)) return DiskCache(*folder, max_bytes);
  if (auto cache = env::Get(env::Var::kXdgCacheHome)) return DiskCache(*cache + "/torch_tpu", max_bytes);
  if (auto home = env::Get(env::Var::kHome)) return DiskCache(*home + "/.cache/torch_tpu", max_bytes);
  return DiskCache("", 0);
}

std::string DiskCache::PathOf(const std::string& key) const {
  return folder_ + "/" + HexOf(Hash64(key)).append(kSuffix);
}

bool DiskCache::Read(const std::string& key, std::string* bytes) const {
  if (!enabled()) return false;
  const std::string path = PathOf(key);
  std::string content;
  if (!ReadFile(path, &content)) return false;
  std::string_view rest = content;
  uint64_t size = 0, checksum = 0;
  if (!TakeText(&rest, Header(key)) || !Take(&rest, &size) || !Take(&rest, &checksum) || rest.size() != size ||
      Hash64(rest) != checksum) {
    return false;
  }
  bytes->assign(rest);
  std::error_code ignored;  // a read-only cache keeps its times
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return true;
}

void DiskCache::Write(const std::string& key, const std::string& bytes) const {
  if (!enabled()) return;
  std::error_code error;
  if (fs::create_directories(folder_, error)) {
    // What is in here is run by whoever reads it.
    fs::permissions(folder_, fs::perms::owner_all, error);
  }
  std::string content = Header(key);
  Append(&content, static_cast<uint64_t>(bytes.size()));
  Append(&content, Hash64(bytes));
  content += bytes;
  if (static_cast<int64_t>(content.size()) > max_bytes_) return;

  static std::atomic<uint64_t> counter{0};
  const std::string temporary =
      folder_ + "/" + std::string(kTemporary) + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1));
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    file.close();
    if (!file) {  // disk full, or a folder that cannot be written
      fs::remove(temporary, error);
      return;
    }
  }
  fs::rename(temporary, PathOf(key), error);
  if (error) {
    fs::remove(temporary, error);
    return;
  }
  // Looking at the folder costs as much as it has files, so it is done once in a while; Evict leaves room for that.
  const auto size = static_cast<int64_t>(content.size());
  if (written_since_eviction_.fetch_add(size) + size >= max_bytes_ / 16) {
    written_since_eviction_ = 0;
    Evict();
  }
}

std::vector<std::pair<std::string, std::string>> DiskCache::Keys() const {
  std::vector<std::pair<std::string, std::string>> keys;
  for (const Entry& entry : ListEntries(folder_, nullptr)) {
    std::ifstream file(entry.path, std::ios::binary);
    std::string head(kMagic.size() + sizeof(uint32_t) + sizeof(uint64_t), '\0');
    if (!file.read(head.data(), static_cast<std::streamsize>(head.size()))) continue;
    std::string_view rest = head;
    uint32_t version = 0;
    uint64_t size = 0;
    if (!TakeText(&rest, kMagic) || !Take(&rest, &version) || version != kVersion || !Take(&rest, &size) ||
        size > static_cast<uint64_t>(entry.bytes)) {
      continue;
    }
    std::string key(size, '\0');
    if (file.read(key.data(), static_cast<std::streamsize>(size)))
      keys.emplace_back(entry.path.filename().string(), std::move(key));
  }
  return keys;
}

DiskCache::Lock::~Lock() {
  if (file_ >= 0) ::close(file_);
}

DiskCache::Lock DiskCache::LockFor(const std::string& key) const {
  if (!enabled()) return Lock();
  std::error_code error;
  if (fs::create_directories(folder_, error)) fs::permissions(folder_, fs::perms::owner_all, error);
  const std::string path = folder_ + "/" + std::string(kLock) + std::to_string(Hash64(key) % kNumLocks);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return Lock();
  Lock lock(file);
  const auto start = std::chrono::steady_clock::now();
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    if (std::chrono::steady_clock::now() - start > kLongestWait) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return lock;
}

void DiskCache::Remove(const std::string& key) const {
  if (!enabled()) return;
  std::error_code ignored;
  fs::remove(PathOf(key), ignored);
}

DiskCache::Usage DiskCache::usage() const {
  Usage usage;
  for (const Entry& entry : ListEntries(folder_, nullptr)) {
    ++usage.files;
    usage.bytes += entry.bytes;
  }
  return usage;
}

int64_t DiskCache::Clear() const {
  int64_t removed = 0;
  std::error_code error;
  for (const Entry& entry : ListEntries(folder_, nullptr)) {
    if (fs::remove(entry.path, error)) ++removed;
  }
  return removed;
}

void DiskCache::Evict() const {
  std::vector<fs::path> stale;
  std::vector<Entry> entries = ListEntries(folder_, &stale);
  std::error_code error;
  for (const fs::path& path : stale) fs::remove(path, error);
  int64_t total = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  if (total <= max_bytes_ - max_bytes_ / 16) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= max_bytes_ - max_bytes_ / 16) break;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

}  // namespace torch_tpu
