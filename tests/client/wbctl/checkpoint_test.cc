#include "client/wbctl/contents/checkpoint.h"

#include <string>
#include <variant>
#include <vector>

#include "client/wbctl/contents/checkpoint_contents.h"
#include "client/wbctl/contents/checkpoint_copy.h"
#include "client/wbctl/contents/cut.h"
#include "planner/solve/planner.h"
#include "proto/convert.h"
#include "tests/support/catch.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/temp_folder.h"
#include "tests/support/whole_file.h"

namespace wb {
namespace {

using test::ReadWholeFile;
using test::SafetensorsBytes;
using test::TempFolder;

std::string OneTensor(const std::string& name, int elements) {
  const std::string count = std::to_string(elements);
  return SafetensorsBytes(R"({")" + name + R"(":{"dtype":"U8","shape":[)" + count +
                              R"(],"data_offsets":[0,)" + count + "]}}",
                          std::string(static_cast<std::size_t>(elements), 'x'));
}

std::string RefusedAt(const std::filesystem::path& path) {
  const auto opened = Checkpoint::Open(path);
  REQUIRE(std::holds_alternative<Refusals>(opened));
  std::string text;
  for (const Refusal& refusal : std::get<Refusals>(opened)) text += refusal.text + "\n";
  return text;
}

Checkpoint Opened(const std::filesystem::path& path) {
  auto opened = Checkpoint::Open(path);
  if (const auto* refusals = std::get_if<Refusals>(&opened)) FAIL(refusals->front().text);
  return std::move(std::get<Checkpoint>(opened));
}

/// "w" [5,3], "scale" a scalar, "b" [3], "none" [0,2].
std::string SmallModel() {
  std::string data;
  for (int i = 0; i < 15 + 1 + 3; ++i) data.push_back(static_cast<char>('a' + i));
  return SafetensorsBytes(R"({"w":{"dtype":"U8","shape":[5,3],"data_offsets":[0,15]},
    "scale":{"dtype":"I8","shape":[],"data_offsets":[15,16]},
    "b":{"dtype":"U8","shape":[3],"data_offsets":[16,19]},
    "none":{"dtype":"F32","shape":[0,2],"data_offsets":[19,19]}})",
                          data);
}

std::vector<Tensor> TensorsOf(const Checkpoint& checkpoint) {
  std::vector<Tensor> tensors;
  for (const Checkpoint::Entry& entry : checkpoint.entries()) tensors.push_back(entry.tensor);
  return tensors;
}

LoadedJob JobOf(const Checkpoint& checkpoint,
                const std::string& trainer,
                const std::string& rollout) {
  auto loaded = JobFromJson(CutLayoutJson("j", TensorsOf(checkpoint),
                                          {{Role::kTrainer, "policy", "n0", *ParseCut(trainer)},
                                           {Role::kRollout, "engine0", "n1", *ParseCut(rollout)}}));
  if (const auto* refusals = std::get_if<Refusals>(&loaded)) FAIL(refusals->front().text);
  return std::move(std::get<LoadedJob>(loaded));
}

TEST_CASE("a checkpoint's tensors are ordered by name, scalars have one element", "[wbctl]") {
  const TempFolder scratch;
  const Checkpoint checkpoint = Opened(scratch.Write("m.safetensors", SmallModel()));
  REQUIRE_FALSE(checkpoint.sharded());
  REQUIRE(TensorsOf(checkpoint) ==
          std::vector<Tensor>{{.name = "b", .dtype = Dtype::kUint8, .shape = {3}},
                              {.name = "none", .dtype = Dtype::kFp32, .shape = {0, 2}},
                              {.name = "scale", .dtype = Dtype::kInt8, .shape = {1}},
                              {.name = "w", .dtype = Dtype::kUint8, .shape = {5, 3}}});
  REQUIRE(checkpoint.elements(*checkpoint.Find("scale")).front() == std::byte{'p'});
  REQUIRE(checkpoint.Find("x") == nullptr);
}

TEST_CASE("a folder of shards is one checkpoint, with or without its index", "[wbctl]") {
  const TempFolder scratch;
  scratch.Write("a.safetensors", OneTensor("one", 3));
  scratch.Write("b.safetensors", OneTensor("two", 4));
  const bool with_index = GENERATE(false, true);
  if (with_index) {
    scratch.Write("m.safetensors.index.json",
                  R"({"weight_map":{"one":"a.safetensors","two":"b.safetensors"}})");
  }
  const Checkpoint checkpoint = Opened(scratch.path());
  REQUIRE(checkpoint.sharded());
  REQUIRE(checkpoint.entries().size() == 2);
}

TEST_CASE("shards that contradict each other or their index are refused by tensor", "[wbctl]") {
  const TempFolder scratch;
  scratch.Write("a.safetensors", OneTensor("one", 3));
  scratch.Write("b.safetensors", OneTensor("one", 4));
  REQUIRE_THAT(RefusedAt(scratch.path()), Catch::Contains("tensor one is in both"));

  scratch.Write("b.safetensors", OneTensor("two", 4));
  const auto index = scratch.Write(
      "m.safetensors.index.json",
      R"({"weight_map":{"one":"b.safetensors","two":"b.safetensors","x":"a.safetensors"}})");
  REQUIRE_THAT(RefusedAt(index), Catch::Contains("tensor one is here, the index says otherwise") &&
                                     Catch::Contains("tensor x is missing from a.safetensors"));
}

TEST_CASE("an index may not name files elsewhere", "[wbctl]") {
  const TempFolder scratch;
  const auto index =
      scratch.Write("m.safetensors.index.json", R"({"weight_map":{"one":"../../etc/passwd"}})");
  REQUIRE_THAT(RefusedAt(index), Catch::Contains("want a plain file name"));
  scratch.Write("m.safetensors.index.json", "{]");
  REQUIRE_THAT(RefusedAt(index), Catch::Contains("has no object \"weight_map\""));
}

TEST_CASE("a folder without a checkpoint is refused", "[wbctl]") {
  const TempFolder scratch;
  REQUIRE_THAT(RefusedAt(scratch.path()), Catch::Contains("holds no *.safetensors"));
}

TEST_CASE("a cut is a kind and a number of ranks", "[wbctl]") {
  REQUIRE(*ParseCut("rows:2") == Cut{CutKind::kRows, 2});
  REQUIRE(*ParseCut("columns:4096") == Cut{CutKind::kColumns, 4096});
  REQUIRE(*ParseCut("replicated:1") == Cut{CutKind::kReplicated, 1});
  const std::string bad = GENERATE("rows", "rows:", "rows:0", "rows:-1", "rows:4097", "cols:2",
                                   ":2", "", "rows:2x", "rows:99999999999");
  CAPTURE(bad);
  REQUIRE_THAT(std::string(ParseCut(bad).status().message()),
               Catch::Contains("want rows:N, columns:N or replicated:N"));
}

TEST_CASE("shares are uneven where the extent does not divide, first ranks first", "[wbctl]") {
  REQUIRE(ShareOf(10, 3, 0) == Share{0, 4});
  REQUIRE(ShareOf(10, 3, 1) == Share{4, 7});
  REQUIRE(ShareOf(10, 3, 2) == Share{7, 10});
  REQUIRE(ShareOf(2, 4, 1) == Share{1, 2});
  REQUIRE(ShareOf(2, 4, 2) == Share{2, 2});
}

TEST_CASE("every cut of a checkpoint is a layout that plans", "[wbctl]") {
  const TempFolder scratch;
  const Checkpoint checkpoint = Opened(scratch.Write("m.safetensors", SmallModel()));
  const std::string trainer = GENERATE("rows:1", "rows:2", "rows:7", "columns:2", "replicated:2");
  const std::string rollout = GENERATE("rows:3", "columns:4", "columns:5", "replicated:2");
  CAPTURE(trainer, rollout);
  const LoadedJob job = JobOf(checkpoint, trainer, rollout);
  REQUIRE(std::holds_alternative<Plan>(Solve(job.job)));
  REQUIRE(CheckpointMismatches(job.job, checkpoint).empty());
  REQUIRE(ExportObstacles(job.job, checkpoint).empty());
}

TEST_CASE("1-D tensors and scalars are whole on every rank, others cut", "[wbctl]") {
  const TempFolder scratch;
  const Checkpoint checkpoint = Opened(scratch.Write("m.safetensors", SmallModel()));
  const LoadedJob job = JobOf(checkpoint, "rows:2", "columns:4");
  std::vector<std::string> held;
  for (const Registration& registration : job.registrations) {
    for (const Piece& piece : registration.layout.pieces) {
      held.push_back(registration.layout.name.ToString() + " " +
                     registration.tensors[piece.tensor.value()].name + " " + piece.box.ToString());
    }
  }
  REQUIRE(held ==
          std::vector<std::string>{
              "engine0/0 b [0]..[3]", "engine0/0 scale [0]..[1]", "engine0/0 w [0,0]..[5,1]",
              "engine0/1 b [0]..[3]", "engine0/1 scale [0]..[1]", "engine0/1 w [0,1]..[5,2]",
              "engine0/2 b [0]..[3]", "engine0/2 scale [0]..[1]", "engine0/2 w [0,2]..[5,3]",
              "engine0/3 b [0]..[3]", "engine0/3 scale [0]..[1]",  // no third column left
              "policy/0 b [0]..[3]", "policy/0 scale [0]..[1]", "policy/0 w [0,0]..[3,3]",
              "policy/1 b [0]..[3]", "policy/1 scale [0]..[1]", "policy/1 w [3,0]..[5,3]"});
}

TEST_CASE("a checkpoint that does not fit the layout is refused tensor by tensor", "[wbctl]") {
  const TempFolder scratch;
  const Checkpoint checkpoint = Opened(scratch.Write("m.safetensors", SmallModel()));
  const LoadedJob job = JobOf(checkpoint, "rows:2", "columns:4");
  const Checkpoint other = Opened(scratch.Write(
      "o.safetensors", SafetensorsBytes(R"({"w":{"dtype":"I8","shape":[3,5],"data_offsets":[0,15]},
        "scale":{"dtype":"I8","shape":[],"data_offsets":[15,16]},
        "extra":{"dtype":"U8","shape":[1],"data_offsets":[16,17]}})",
                                        std::string(17, 'x'))));
  std::string text;
  for (const Refusal& refusal : CheckpointMismatches(job.job, other)) text += refusal.text + "\n";
  REQUIRE_THAT(text, Catch::Contains("tensor b is not in the checkpoint") &&
                         Catch::Contains("tensor w is UINT8 [5,3] in the layout file and INT8 "
                                         "[3,5] in the checkpoint"));
  REQUIRE_THAT(text, !Catch::Contains("scale"));
  text.clear();
  for (const Refusal& refusal : ExportObstacles(job.job, other)) text += refusal.text + "\n";
  REQUIRE_THAT(text, Catch::Contains("tensor extra of the checkpoint cannot be exported: group "
                                     "engine0 holds nothing of it"));
}

TEST_CASE("boxes cover a tensor only if no element is left", "[wbctl]") {
  const Box left = *Box::Create({0, 0}, {4, 2});
  const Box top = *Box::Create({0, 1}, {2, 5});
  const Box rest = *Box::Create({2, 2}, {4, 5});
  const Box all_but_one = *Box::Create({2, 2}, {4, 4});
  REQUIRE(CoverWhole({4, 5}, {&left, &top, &rest, &left}));
  REQUIRE_FALSE(CoverWhole({4, 5}, {&left, &top, &all_but_one}));
  REQUIRE_FALSE(CoverWhole({4, 5}, {}));
  REQUIRE(CoverWhole({0, 5}, {}));
}

TEST_CASE("a copy with all elements written is the checkpoint, byte for byte", "[wbctl]") {
  const TempFolder scratch;
  const Checkpoint checkpoint = Opened(scratch.Write("m.safetensors", SmallModel()));
  const std::filesystem::path out = scratch.File("out.safetensors");
  {
    auto copy = CheckpointCopy::Create(checkpoint, out);
    REQUIRE(copy.ok());
    auto writer = CheckpointCopyWriter::Open(checkpoint, copy->path());
    REQUIRE(writer.ok());
    REQUIRE(copy->Differences(9)->size() == 3);  // all but the one without elements
    const CheckpointContents contents(checkpoint);
    for (const Checkpoint::Entry& entry : checkpoint.entries()) {
      std::vector<std::byte> elements(checkpoint.elements(entry).size());
      contents.Write(entry.tensor, 0, elements.size(), elements);
      if (!elements.empty()) REQUIRE(writer->Write(entry.tensor, 0, elements).ok());
    }
    REQUIRE(copy->Differences(9)->empty());
    REQUIRE(copy->Commit().ok());
  }
  REQUIRE(ReadWholeFile(out) == SmallModel());
  // nothing but the two files is left
  REQUIRE(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 2);
}

TEST_CASE("a copy with a wrong element names its tensor and byte", "[wbctl]") {
  const TempFolder scratch;
  const Checkpoint checkpoint = Opened(scratch.Write("m.safetensors", SmallModel()));
  auto copy = CheckpointCopy::Create(checkpoint, scratch.File("out.safetensors"));
  REQUIRE(copy.ok());
  auto writer = CheckpointCopyWriter::Open(checkpoint, copy->path());
  for (const Checkpoint::Entry& entry : checkpoint.entries()) {
    REQUIRE(writer->Write(entry.tensor, 0, checkpoint.elements(entry)).ok());
  }
  const std::byte wrong{'!'};
  REQUIRE(writer->Write(checkpoint.Find("w")->tensor, 7, {&wrong, 1}).ok());
  REQUIRE(*copy->Differences(9) ==
          std::vector<std::string>{"tensor w differs first at its byte 7 of 15"});
}

TEST_CASE("a copy that is given up leaves nothing behind", "[wbctl]") {
  const TempFolder scratch;
  const Checkpoint checkpoint = Opened(scratch.Write("m.safetensors", SmallModel()));
  { REQUIRE(CheckpointCopy::Create(checkpoint, scratch.File("out")).ok()); }
  REQUIRE(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 1);
  REQUIRE_THAT(
      std::string(CheckpointCopy::Create(checkpoint, "/nonexistent/out").status().message()),
      Catch::Contains("/nonexistent/out"));
  REQUIRE_THAT(std::string(CheckpointCopy::Create(checkpoint, scratch.path()).status().message()),
               Catch::Contains("is a folder, want a file"));
}

TEST_CASE("a copy of shards is a folder of shards", "[wbctl]") {
  const TempFolder scratch;
  std::filesystem::create_directory(scratch.File("m"));
  scratch.Write("m/a.safetensors", OneTensor("one", 3));
  scratch.Write("m/b.safetensors", OneTensor("two", 4));
  const Checkpoint checkpoint = Opened(scratch.File("m"));
  auto copy = CheckpointCopy::Create(checkpoint, scratch.File("out"));
  REQUIRE(copy.ok());
  auto writer = CheckpointCopyWriter::Open(checkpoint, copy->path());
  for (const Checkpoint::Entry& entry : checkpoint.entries()) {
    REQUIRE(writer->Write(entry.tensor, 0, checkpoint.elements(entry)).ok());
  }
  REQUIRE(copy->Differences(9)->empty());
  REQUIRE(copy->Commit().ok());
  REQUIRE(ReadWholeFile(scratch.File("out/b.safetensors")) == OneTensor("two", 4));
}

}  // namespace
}  // namespace wb
