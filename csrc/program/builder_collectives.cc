// Operations across devices.
#include <set>

#include "program/builder_impl.h"

namespace torch_tpu {
namespace {

void ExpectGroups(std::string_view op, const Builder::Groups& groups) {
  Check(!groups.empty() && !groups[0].empty(), op, ": expected at least one replica group, got none");
  std::set<int64_t> seen;
  for (const auto& group : groups) {
    Check(group.size() == groups[0].size(), op, ": expected groups of equal sizes, got ", groups[0].size(), " and ",
          group.size());
    for (int64_t id : group) {
      Check(id >= 0 && seen.insert(id).second, op, ": expected ids of 0 or more, none twice, got ", id);
    }
  }
}

std::string GroupText(const Builder::Groups& groups) {
  std::string text = "replica_groups = dense<[";
  for (size_t i = 0; i < groups.size(); ++i) text += (i ? ", " : "") + Brackets(groups[i]);
  return text + Cat("]> : tensor<", groups.size(), "x", groups[0].size(), "xi64>");
}

std::string ChannelText(int64_t channel_id, bool global_ids) {
  if (channel_id <= 0) return "";
  return Cat(", channel_handle = #stablehlo.channel_handle<handle = ", channel_id, ", type = 1>",
             global_ids ? ", use_global_device_ids" : "");
}

}  // namespace

Value Builder::AllReduce(Value x, Reducer reducer, const Groups& groups, int64_t channel_id) {
  constexpr std::string_view kOp = "all_reduce";
  impl_->Use(kOp, {x});
  impl_->ExpectKind(kOp, x, KindsOf(reducer));
  ExpectGroups(kOp, groups);
  const TensorType scalar{x.dtype(), {}};
  const std::string region = impl_->TypedRegion(kOp, {scalar, scalar}, true, BodyOf(*this, reducer), {scalar});
  return impl_->EmitMany(kOp, {x}, {x.type()}, GroupText(groups) + ChannelText(channel_id, true), {region})[0];
}

Value Builder::AllGather(Value x, int64_t dim, const Groups& groups, int64_t channel_id) {
  constexpr std::string_view kOp = "all_gather";
  impl_->Use(kOp, {x});
  ExpectGroups(kOp, groups);
  ExpectDims(kOp, "dims", {dim}, x.rank());
  TensorType type = x.type();
  type.dims[dim] *= static_cast<int64_t>(groups[0].size());
  return impl_->Emit(kOp, {x}, type,
                     Cat("all_gather_dim = ", dim, " : i64, ", GroupText(groups), ChannelText(channel_id, true)));
}

Value Builder::ReduceScatter(Value x, Reducer reducer, int64_t dim, const Groups& groups, int64_t channel_id) {
  constexpr std::string_view kOp = "reduce_scatter";
  impl_->Use(kOp, {x});
  impl_->ExpectKind(kOp, x, KindsOf(reducer));
  ExpectGroups(kOp, groups);
  ExpectDims(kOp, "dims", {dim}, x.rank());
  TensorType type = x.type();
  const int64_t parts = static_cast<int64_t>(groups[0].size());
  Check(type.dims[dim] % parts == 0, kOp, ": expected a multiple of ", parts, " in dim ", dim, ", got ",
        type.ToString());
  type.dims[dim] /= parts;
  const TensorType scalar{x.dtype(), {}};
  const std::string region = impl_->TypedRegion(kOp, {scalar, scalar}, true, BodyOf(*this, reducer), {scalar});
  return impl_->EmitMany(kOp, {x}, {type},
                         Cat("scatter_dimension = ", dim, " : i64, ", GroupText(groups), ChannelText(channel_id, true)),
                         {region})[0];
}

Value Builder::AllToAll(Value x, int64_t split_dim, int64_t concat_dim, int64_t split_count, const Groups& groups,
                        int64_t channel_id) {
  constexpr std::string_view kOp = "all_to_all";
  impl_->Use(kOp, {x});
  ExpectGroups(kOp, groups);
  ExpectDims(kOp, "dims", {split_dim}, x.rank());
  ExpectDims(kOp, "dims", {concat_dim}, x.rank());
  Check(split_count == static_cast<int64_t>(groups[0].size()), kOp, ": expected a split into ", groups[0].size(),
        " parts, one for each of a group, got ", split_count);
  TensorType type = x.type();
  Check(type.dims[split_dim] % split_count == 0, kOp, ": expected a multiple of ", split_count, " in dim ", split_dim,
        ", got ", type.ToString());
  type.dims[split_dim] /= split_count;
  type.dims[concat_dim] *= split_count;
  return impl_->Emit(
      kOp, {x}, type,
      Cat("split_dimension = ", split_dim, " : i64, concat_dimension = ", concat_dim,
          " : i64, split_count = ", split_count, " : i64, ", GroupText(groups), ChannelText(channel_id, false)));
}

Value Builder::CollectivePermute(Value x, const std::vector<std::pair<int64_t, int64_t>>& pairs, int64_t channel_id) {
  constexpr std::string_view kOp = "collective_permute";
  impl_->Use(kOp, {x});
  Dims sources, targets;
  for (const auto& [source, target] : pairs) {
    Check(source >= 0 && target >= 0 && !Contains(sources, source) && !Contains(targets, target), kOp,
          ": expected sources and targets of 0 or more, none twice, got ", source, " -> ", target);
    sources.push_back(source);
    targets.push_back(target);
  }
  return impl_->Emit(kOp, {x}, x.type(),
                     Cat("source_target_pairs = ", Pairs(sources, targets), ChannelText(channel_id, false)));
}

Value Builder::ReplicaId() {
  impl_->Use("replica_id", {});
  return impl_->Emit("replica_id", {}, {DType::kUInt32, {}});
}

Value Builder::PartitionId() {
  impl_->Use("partition_id", {});
  return impl_->Emit("partition_id", {}, {DType::kUInt32, {}});
}

}  // namespace torch_tpu
