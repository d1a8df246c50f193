#include "runtime/compile_options.h"

#include <cstdlib>

#include "base/error.h"
#include "runtime/proto_writer.h"

namespace torch_tpu {
namespace {

// Field numbers of xla/pjrt/proto/compile_options.proto and xla/xla_data.proto.
namespace field {
constexpr int kExecutableBuildOptions = 3, kEnvOptionOverrides = 7;               // CompileOptionsProto
constexpr int kNumReplicas = 4, kNumPartitions = 5, kDeviceAssignment = 9;        // ExecutableBuildOptionsProto
constexpr int kReplicaCount = 1, kComputationCount = 2, kComputationDevices = 3;  // DeviceAssignmentProto
constexpr int kReplicaDeviceIds = 1;                                              // its ComputationDevice
constexpr int kMapKey = 1, kMapValue = 2;                                         // a map's entry
constexpr int kStringValue = 1, kBoolValue = 2, kIntValue = 3, kDoubleValue = 4;  // OptionOverrideProto
}  // namespace field

// The plugin checks an override's type against its option's, so the text's own form decides.
std::string OverrideValue(const std::string& text) {
  ProtoWriter value;
  char* end = nullptr;
  if (text == "true" || text == "false") {
    value.Varint(field::kBoolValue, text == "true");
    return value.bytes();
  }
  if (!text.empty()) {
    const long long integer = std::strtoll(text.c_str(), &end, 10);
    if (*end == '\0') {
      value.Varint(field::kIntValue, integer);
      return value.bytes();
    }
    const double real = std::strtod(text.c_str(), &end);
    if (*end == '\0') {
      value.Double(field::kDoubleValue, real);
      return value.bytes();
    }
  }
  value.Bytes(field::kStringValue, text);
  return value.bytes();
}

std::string OneDeviceAssignment(int64_t device_id) {
  ProtoWriter computation;
  computation.Varint(field::kReplicaDeviceIds, device_id);
  ProtoWriter assignment;
  assignment.Varint(field::kReplicaCount, 1);
  assignment.Varint(field::kComputationCount, 1);
  assignment.Bytes(field::kComputationDevices, computation.bytes());
  return assignment.bytes();
}

}  // namespace

std::string SerializeOptions(const CompileOptions& options, std::optional<int64_t> device_id) {
  Check(options.num_replicas >= 1 && options.num_partitions >= 1,
        "compile: expected at least one replica and one partition, got ", options.num_replicas, " and ",
        options.num_partitions);
  ProtoWriter build;
  build.Varint(field::kNumReplicas, options.num_replicas);
  build.Varint(field::kNumPartitions, options.num_partitions);
  if (device_id) {
    Check(options.num_replicas == 1 && options.num_partitions == 1,
          "compile: expected one replica and one partition with a device ordinal, got ", options.num_replicas, " and ",
          options.num_partitions);
    build.Bytes(field::kDeviceAssignment, OneDeviceAssignment(*device_id));
  }
  ProtoWriter proto;
  proto.Bytes(field::kExecutableBuildOptions, build.bytes());
  for (const auto& [name, text] : options.overrides) {
    ProtoWriter entry;
    entry.Bytes(field::kMapKey, name);
    entry.Bytes(field::kMapValue, OverrideValue(text));
    proto.Bytes(field::kEnvOptionOverrides, entry.bytes());
  }
  return proto.bytes();
}

}  // namespace torch_tpu
