#include "daemon/rpc/local/session_join.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "daemon/rpc/local/client_messages.h"
#include "daemon/rpc/sha256.h"
#include "daemon/rpc/wire_values.h"
#include "planner/base/checked_math.h"
#include "planner/base/status_macros.h"
#include "planner/model/layout.h"
#include "proto/convert.h"
#include "transport/memory/cuda/device_uuid.h"

namespace wb {
namespace {

constexpr std::uint32_t kProtocol = 1;

absl::Status CheckIdentity(const v1::JoinRequest& request) {
  if (request.protocol() != kProtocol) {
    return WrongField("join.protocol",
                      absl::StrCat(request.protocol(), ", this daemon speaks ", kProtocol));
  }
  WB_RETURN_IF_ERROR(CheckName("join.group", request.group()));
  WB_RETURN_IF_ERROR(CheckWorldSize(request.world_size()));

  if (!request.has_rank()) return WrongField("join.rank", "is missing, want the worker's rank");
  if (request.rank() < 0 || request.rank() >= request.world_size()) {
    return WrongField("join.rank", absl::StrFormat("%d, want 0..%d (world_size %d)", request.rank(),
                                                   request.world_size() - 1, request.world_size()));
  }
  return CheckIncarnation(request.incarnation());
}

absl::Status Differ(std::string_view field, const std::string& join, const std::string& layout) {
  return WrongField(field, absl::StrFormat("'%s' in the join, '%s' in the layout", join, layout));
}

/// The request and the layout speak of the same worker.
absl::Status CheckSame(const v1::JoinRequest& request, const v1::Layout& layout) {
  const v1::Worker& worker = layout.worker();
  if (request.job() != layout.job()) return Differ("job", request.job(), layout.job());
  if (request.group() != worker.group()) return Differ("group", request.group(), worker.group());
  if (request.role() != worker.role()) {
    return Differ("role", v1::Role_Name(request.role()), v1::Role_Name(worker.role()));
  }
  if (worker.has_rank() && request.rank() != worker.rank()) {
    return Differ("rank", absl::StrCat(request.rank()), absl::StrCat(worker.rank()));
  }
  return absl::OkStatus();
}

absl::StatusOr<SessionJoin::CheckedLayout> CheckLayout(const v1::JoinRequest& request,
                                                       const std::string& node,
                                                       const std::string& bytes) {
  v1::Layout wire;
  if (!wire.ParseFromString(bytes)) return WrongField("layout", "is no weightbridge.v1.Layout");
  WB_RETURN_IF_ERROR(CheckSame(request, wire));
  // A worker is where its daemon is; a client that was not told the node may leave it out.
  if (wire.worker().node().empty()) wire.mutable_worker()->set_node(node);
  if (wire.worker().node() != node) {
    return WrongField("layout.worker.node",
                      absl::StrFormat("'%s', this daemon is '%s'", wire.worker().node(), node));
  }
  std::variant<Registration, Refusals> checked = RegistrationFromProto(wire);
  wire.Clear();
  if (const auto* refusals = std::get_if<Refusals>(&checked)) return ToStatus(*refusals);
  auto& registration = std::get<Registration>(checked);
  const std::string contents = ContentsOf(registration);
  return SessionJoin::CheckedLayout{std::move(registration), {Sha256(contents), contents.size()}};
}

}  // namespace

absl::Status SessionJoin::Take(const v1::ClientMessage& message,
                               std::vector<FdHandle> descriptors) {
  const v1::ClientMessage::BodyCase body = message.body_case();
  if (!descriptors.empty() && body != v1::ClientMessage::kAttachBuffer) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(message), " carries ", descriptors.size(), " descriptors, want none"));
  }
  if (step_ == Step::kRequest && body == v1::ClientMessage::kJoin) {
    return TakeRequest(message.join());
  }
  if (step_ == Step::kLayout && body == v1::ClientMessage::kLayoutPart) {
    return TakeLayoutPart(message.layout_part());
  }
  if (step_ == Step::kBuffers && body == v1::ClientMessage::kAttachBuffer) {
    return TakeBuffer(message.attach_buffer(), std::move(descriptors));
  }
  return OutOfOrder(message);
}

absl::Status SessionJoin::OutOfOrder(const v1::ClientMessage& message) const {
  switch (step_) {
    case Step::kRequest:
      return absl::FailedPreconditionError(
          absl::StrCat(NameOf(message), " out of order, want join first"));
    case Step::kLayout:
      return absl::FailedPreconditionError(
          absl::StrCat(NameOf(message), " out of order, want layout_part: ", layout_bytes_.size(),
                       " of ", request_.layout_bytes(), " bytes of the layout are here"));
    case Step::kCheck:
      return absl::FailedPreconditionError(
          absl::StrCat(NameOf(message), " out of order, the layout is being checked"));
    case Step::kBuffers:
      return absl::FailedPreconditionError(absl::StrCat(
          NameOf(message), " out of order, want attach_buffer or join_finish: ", attached_, " of ",
          request_.buffers(), " buffers are here"));
    case Step::kFinished:
      break;
  }
  return absl::FailedPreconditionError(
      absl::StrCat(NameOf(message), " out of order, the session is being opened"));
}

absl::Status SessionJoin::TakeRequest(const v1::JoinRequest& request) {
  WB_RETURN_IF_ERROR(CheckIdentity(request));
  if (request.snapshots() && request.role() != v1::TRAINER) {
    return WrongField("join.snapshots", absl::StrCat(request.group(), "/", request.rank(),
                                                     " is a rollout: only trainers publish"));
  }
  WB_ASSIGN_OR_RETURN(memory_, MemoryStateFromProto(request.memory()));
  WB_RETURN_IF_ERROR(CheckHeld(memory_, Version(request.held_version())));
  if (request.layout_bytes() == 0) return WrongField("join.layout_bytes", "0, want a layout");
  if (request.layout_bytes() > limits_.layout_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("join.layout_bytes: ", request.layout_bytes(),
                                                     ", limits.message_bytes allows ",
                                                     limits_.layout_bytes));
  }
  WB_RETURN_IF_ERROR(ticket_.AdmitWorker());
  request_ = request;
  name_ = absl::StrCat(request.group(), "/", request.rank());
  step_ = Step::kLayout;
  return absl::OkStatus();
}

absl::Status SessionJoin::TakeLayoutPart(const v1::LayoutPart& part) {
  if (part.data().empty()) return WrongField("layout_part.data", "is empty");
  if (part.data().size() > request_.layout_bytes() - layout_bytes_.size()) {
    return WrongField("layout_part.data",
                      absl::StrCat(layout_bytes_.size() + part.data().size(),
                                   " bytes of the layout are here, join.layout_bytes announced ",
                                   request_.layout_bytes()));
  }
  layout_bytes_ += part.data();
  if (layout_bytes_.size() == request_.layout_bytes()) step_ = Step::kCheck;
  return absl::OkStatus();
}

std::optional<SessionJoin::LayoutCheck> SessionJoin::TakeLayoutCheck() {
  if (step_ != Step::kCheck || layout_bytes_.empty()) return std::nullopt;
  return [request = request_, node = limits_.node, bytes = std::exchange(layout_bytes_, {})]() {
    return CheckLayout(request, node, bytes);
  };
}

absl::Status SessionJoin::SetLayout(absl::StatusOr<CheckedLayout> checked) {
  WB_RETURN_IF_ERROR(checked.status());
  registration_ = std::move(checked->registration);
  contents_ = std::move(checked->contents);
  const SharedList<Buffer>& wanted = registration_.layout.buffers;
  for (std::size_t i = 0; i < wanted.size(); ++i) index_of_.emplace(wanted[i].name, i);
  buffers_.resize(wanted.size());
  used_.resize(wanted.size());
  for (const Piece& piece : registration_.layout.pieces) used_[piece.buffer] = true;
  step_ = Step::kBuffers;
  return request_.snapshots() ? AdmitSnapshots() : absl::OkStatus();
}

/// Before a buffer is opened: said at Join what the mode takes.
absl::Status SessionJoin::AdmitSnapshots() {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (!used_[i]) continue;
    WB_ASSIGN_OR_RETURN(bytes, CheckedAdd(bytes, registration_.layout.buffers[i].bytes));
  }
  const absl::Status admitted = ticket_.AdmitMemory(bytes);
  return {admitted.code(), absl::StrCat("snapshots of ", name_, ": ", admitted.message())};
}

absl::StatusOr<std::vector<Region>> SessionJoin::MapSnapshots() const {
  std::vector<Region> snapshots;
  for (std::size_t i = 0; i < used_.size(); ++i) {
    WB_ASSIGN_OR_RETURN(Region snapshot,
                        Region::MapArena(used_[i] ? registration_.layout.buffers[i].bytes : 0));
    snapshots.push_back(std::move(snapshot));
  }
  return snapshots;
}

absl::Status SessionJoin::CheckBuffer(const v1::AttachBuffer& attach) const {
  const auto found = index_of_.find(attach.buffer());
  if (found == index_of_.end()) {
    WB_RETURN_IF_ERROR(CheckLength("attach_buffer.buffer", attach.buffer(), kMaxNameBytes));
    return WrongField("attach_buffer.buffer", absl::StrFormat("the layout of %s has no buffer '%s'",
                                                              name_, attach.buffer()));
  }
  if (buffers_[found->second].has_value()) {
    return WrongField("attach_buffer.buffer",
                      absl::StrFormat("'%s' of %s is attached already", attach.buffer(), name_));
  }
  const std::uint64_t wanted = registration_.layout.buffers[found->second].bytes;
  if (attach.bytes() < wanted) {
    return WrongField("attach_buffer.bytes",
                      absl::StrFormat("buffer '%s' of %s has %d bytes, its layout wants %d",
                                      attach.buffer(), name_, attach.bytes(), wanted));
  }
  WB_RETURN_IF_ERROR(CheckEpoch(attach));
  return CheckDevice(attach);
}

absl::Status SessionJoin::CheckEpoch(const v1::AttachBuffer& attach) const {
  if (attached_ == 0 || attach.epoch() == epoch_.value()) return absl::OkStatus();
  return WrongField("attach_buffer.epoch",
                    absl::StrFormat("buffer '%s' of %s has epoch %d, the ones before have %d",
                                    attach.buffer(), name_, attach.epoch(), epoch_.value()));
}

absl::Status SessionJoin::CheckDevice(const v1::AttachBuffer& attach) const {
  if (attach.device().empty()) return absl::OkStatus();
  WB_RETURN_IF_ERROR(CheckLength("attach_buffer.device", attach.device(), kMaxNameBytes));
  const absl::StatusOr<DeviceUuid> device = DeviceUuid::Parse(attach.device());
  const std::string whose = absl::StrFormat("buffer '%s' of %s", attach.buffer(), name_);
  if (!device.ok()) {
    return WrongField("attach_buffer.device", absl::StrCat(whose, ": ", device.status().message()));
  }
  return absl::UnimplementedError(
      absl::StrCat("attach_buffer.device: ", whose, " is memory of device ", device->ToString(),
                   "; importing device memory is not there yet, want the host's"));
}

absl::StatusOr<Region> SessionJoin::OpenMemory(const v1::AttachBuffer& attach, int fd) {
  // A trainer's memory is never written by us, and the kernel holds us to it.
  const RegionAccess access = registration_.layout.role == Role::kTrainer
                                  ? RegionAccess::kReadOnly
                                  : RegionAccess::kReadWrite;
  WB_ASSIGN_OR_RETURN(Region region,
                      Region::MapHostFd(fd, attach.offset_bytes(), attach.bytes(), access, files_));
  WB_RETURN_IF_ERROR(claims_.Claim(
      fd, {name_, request_.job(), attach.buffer(), access, attach.offset_bytes(), attach.bytes()}));
  return region;
}

absl::Status SessionJoin::TakeBuffer(const v1::AttachBuffer& attach,
                                     std::vector<FdHandle> descriptors) {
  if (attached_ == request_.buffers()) {
    return WrongField("attach_buffer", absl::StrFormat("buffer '%s' comes after the %d that join "
                                                       "announced",
                                                       attach.buffer(), attached_));
  }
  WB_RETURN_IF_ERROR(CheckBuffer(attach));
  if (descriptors.size() != 1) {
    return WrongField("attach_buffer", absl::StrFormat("buffer '%s' of %s carries %d descriptors, "
                                                       "want one",
                                                       attach.buffer(), name_, descriptors.size()));
  }
  WB_RETURN_IF_ERROR(ticket_.AdmitMemory(attach.bytes()));
  absl::StatusOr<Region> region = OpenMemory(attach, descriptors.front().get());
  if (!region.ok()) {
    return {region.status().code(), absl::StrCat("buffer '", attach.buffer(), "' of ", name_, ": ",
                                                 region.status().message())};
  }
  buffers_[index_of_.at(attach.buffer())] = OpenedBuffer{attach.buffer(), *std::move(region), 0};
  epoch_ = Epoch(attach.epoch());
  ++attached_;
  return absl::OkStatus();
}

/// A buffer that no piece uses is never touched and needs no memory.
absl::Status SessionJoin::AllowUnused() {
  const Layout& layout = registration_.layout;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].has_value()) continue;
    if (used_[i]) {
      return WrongField("join_finish",
                        absl::StrFormat("buffer '%s' of %s was not attached (%d were)",
                                        layout.buffers[i].name, name_, attached_));
    }
    WB_ASSIGN_OR_RETURN(Region nothing, Region::AllocateArena(0));
    buffers_[i] = OpenedBuffer{layout.buffers[i].name, std::move(nothing), 0};
  }
  return absl::OkStatus();
}

absl::StatusOr<SessionOpening> SessionJoin::Finish(SessionId session) {
  if (step_ != Step::kBuffers) {
    v1::ClientMessage finish;
    finish.mutable_join_finish();
    return OutOfOrder(finish);
  }
  WB_RETURN_IF_ERROR(AllowUnused());
  std::optional<std::vector<Region>> snapshots;
  if (request_.snapshots()) {
    WB_ASSIGN_OR_RETURN(snapshots, MapSnapshots());
  }
  SessionOpening opening{std::move(session),
                         Incarnation(request_.incarnation()),
                         request_.world_size(),
                         epoch_,
                         Version(request_.held_version()),
                         memory_,
                         AttemptId(request_.attempt()),
                         std::move(registration_),
                         {},
                         std::move(snapshots),
                         std::move(contents_),
                         {}};
  for (std::optional<OpenedBuffer>& buffer : buffers_) {
    opening.buffers.push_back(*std::move(buffer));
  }
  step_ = Step::kFinished;
  return opening;
}

}  // namespace wb
