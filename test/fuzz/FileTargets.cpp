// What the readers without MLIR do with bytes, and where they start.
#include "test/fuzz/Targets.h"

#include "compiler/Import/AnnotationRules.h"
#include "compiler/Import/OnnxModel.h"
#include "compiler/Sidecar/Sidecar.h"
#include "runtime/base/File.h"
#include "runtime/base/Npz.h"
#include "runtime/core/SafeTensors.h"
#include "runtime/core/TensorFiles.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanPrinter.h"
#include "test/unit/compiler/OnnxWriter.h"
#include "test/unit/runtime/plan/EntriesPlan.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

namespace hpc::fuzz {

TemporaryFile::TemporaryFile(std::string_view bytes) {
  char inMemory[] = "/dev/shm/hpc-fuzz-XXXXXX", onDisk[] = "/tmp/hpc-fuzz-XXXXXX";
  const char *made = ::mkdtemp(inMemory);
  if (!made)
    made = ::mkdtemp(onDisk);
  if (!made)
    std::abort();
  folder = made;
  std::ofstream(path(), std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
}
TemporaryFile::~TemporaryFile() {
  ::unlink(path().c_str());
  ::rmdir(folder.c_str());
}

bool holds(const Status &status) {
  if (!status.ok() && status.kind() == ErrorKind::Internal) {
    std::fprintf(stderr, "%s\n", status.text().c_str());
    std::abort();
  }
  return status.ok();
}

std::string fileOf(const char *relative) {
  Expected<MappedFile> file = MappedFile::open(std::string(HPC_SOURCE_DIR "/") + relative);
  return file.ok() ? std::string(file->text()) : "";
}

std::vector<std::string> models() {
  using namespace onnxwriter;
  Graph small;
  small.nodes = {node("MatMul", {"x", "w"}, {"a"}),
                 node("Softmax", {"a"}, {"b"}, {attribute("axis", int64_t(-1))}),
                 node("Reshape", {"b", "s"}, {"c"}),
                 node("Transpose", {"c"}, {"d"}, {attribute("perm", std::vector<int64_t>{1, 0})}),
                 node("Gather", {"d", "i"}, {"e"}, {attribute("axis", int64_t(0))}),
                 node("Twice", {"e"}, {"y"}, {}, "", "local")};
  small.inputs = {value("x", f32, {"batch", "3"})};
  small.outputs = {value("y", f32, {})};
  small.initializers = {floats("w", {3, 4}, std::vector<float>(12, 0.5f)), ints("s", {2}, {-1, 2}), ints("i", {2}, {1, 0})};
  small.functions = {bytes(1, "Twice") + bytes(4, "a") + bytes(5, "b") + bytes(7, node("Add", {"a", "a"}, {"b"})) +
                     bytes(9, bytes(1, "") + number(2, 18)) + bytes(10, "local")};
  return {small.model(), fileOf("models/mlp/dynamo-op18.onnx")};
}

std::vector<std::string> nodeModels() {
  std::vector<std::string> found;
  for (const char *archive : {"cases", "cases-images", "fused", "attention"}) {
    Expected<NamedArrays> arrays = readNpz(std::string(HPC_SOURCE_DIR "/test/conformance/") + archive + ".npz");
    for (size_t i = 0; arrays.ok() && i < arrays->size(); ++i) {
      const auto &[name, array] = (*arrays)[i];
      std::string_view ending = "/model";
      if (name.size() > ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0 &&
          array.data.size() < 1 << 14)
        found.emplace_back(reinterpret_cast<const char *>(array.data.data()), array.data.size());
    }
  }
  return found;
}

namespace {
bool runOnnx(std::string_view bytes) {
  TemporaryFile file(bytes);
  Expected<onnx::Model> model = onnx::readOnnx(file.path());
  return holds(model.status()) && holds(onnx::inlineFunctions(*model)) && holds(onnx::orderedNodes(*model).status());
}

bool runPlan(std::string_view body) {
  Expected<plan::Plan> plan = plan::parsePlan(plan::sealEnvelope(std::string(body)), "fuzz.plan");
  if (!holds(plan.status()))
    return false;
  Expected<plan::PlanFacts> facts = plan::analysePlan(*plan);
  holds(facts.status());
  plan::PlanFacts known = facts.ok() ? *facts : plan::staticFacts(*plan);
  plan::printPlan(*plan, known);
  plan::printPlanJson(*plan, known);
  return facts.ok();
}

bool runNpz(std::string_view bytes) { return holds(parseNpz(bytes, "fuzz.npz").status()); }

bool runSafeTensors(std::string_view bytes) {
  TemporaryFile memory(bytes);
  Expected<MappedFile> file = MappedFile::open(memory.path());
  return holds(file.status()) && holds(readSafeTensors(*file).status());
}

/// The stored tensors of a model, as hpc-run reads them; all of their bytes are within the file.
bool runTensors(std::string_view bytes) {
  TemporaryFile memory(bytes);
  Expected<TensorFiles> files = TensorFiles::open(memory.path(), {"--weights=" + memory.path(), {}, false});
  if (!holds(files.status()))
    return false;
  uint64_t sum = 0;
  for (const auto &[name, tensor] : files->tensors())
    for (int64_t i = 0; tensor.dtype && i < tensor.bytes; ++i)
      sum += uint64_t(tensor.data[i]);
  return sum + 1 != 0;
}

bool runSidecar(std::string_view bytes) {
  Expected<Sidecar> sidecar = parseSidecar(bytes, "fuzz.shard.json");
  if (!holds(sidecar.status()))
    return false;
  Expected<Sidecar> again = parseSidecar(sidecarText(*sidecar), "fuzz.shard.json");
  if (!again.ok())
    holds(Status::error(ErrorKind::Internal, "a sidecar that was read is not read again: " + again.status().text()));
  for (const ParamRule &rule : sidecar->params)
    matchesName(rule.match, "transformer.h.0.attn.c_attn.weight");
  return true;
}

bool runAnnotations(std::string_view bytes) {
  TemporaryFile file(bytes);
  Expected<std::optional<onnx::AnnotationRules>> rules = onnx::rulesOfAnnotations(file.path());
  if (!holds(rules.status()))
    return false;
  if (*rules)
    holds(parseSidecar(sidecarText((*rules)->sidecar), "fuzz.onnx").status());
  return holds(onnx::annotatedModel(bytes, {dist::degreesOf({{"dp", 2}, {"tp", 2}}), "", {{"x", {}}}, {}}).status());
}

// ---- seeds ---------------------------------------------------------------------------------------

/// The first of models() with cuts of a weight and an input, and stages.
std::vector<std::string> annotatedModels() {
  SidecarCut column, inside;
  column.dim = 1;
  column.axis = "tp";
  inside.of = {3, 1};
  inside.axis = "dp";
  Expected<std::string> model =
      onnx::annotatedModel(models()[0], {dist::degreesOf({{"dp", 2}, {"pp", 2}, {"tp", 2}}), "", {{"w", {inside, column}}, {"x", {}}}, {{"a", 0}, {"b", 1}}});
  return {model.ok() ? *model : ""};
}

std::vector<std::string> plans() {
  plan::Plan forDevices = plan::test::samplePlan();
  plan::test::action<plan::Kernel>(forDevices, 1, 1, plan::test::stage1::Relu).attention = plan::test::attention();
  plan::Plan inInt8 = plan::test::samplePlan();
  plan::test::holdInInt8(inInt8, 1);
  std::vector<std::string> bodies;
  for (const plan::Plan &plan : {plan::test::samplePlan(), forDevices, inInt8, plan::test::planOfTwo(), plan::test::planOfCache()}) {
    Expected<std::string> body = plan::openEnvelope(plan::serializePlan(plan), "sample.plan");
    bodies.push_back(body.ok() ? *body : "");
  }
  return bodies;
}

std::vector<std::string> archives() {
  TemporaryFile archive("");
  if (!writeNpz(archive.path(), {{"x", Array::zeros(DType::F32, {2, 3})}, {"i", Array::zeros(DType::I64, {})}}).ok())
    return {""};
  Expected<MappedFile> file = MappedFile::open(archive.path());
  return {file.ok() ? std::string(file->text()) : ""};
}

std::vector<std::string> safeTensors() {
  std::string header = R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"__metadata__":{"format":"pt"}})";
  std::string length(8, '\0');
  length[0] = char(header.size());
  return {length + header + std::string(24, '\1')};
}

std::vector<std::string> sidecars() {
  return {R"({"version": 1, "mesh": {"dp": 1, "pp": 2, "tp": 2},
 "params": [{"match": "h.*.c_fc.*", "shard": [{"dim": -1, "axis": "tp"}], "compute": "TP1D", "output_replicate": false},
            {"match": "h.*.c_attn.*", "shard": [{"dim": 1, "of": [3, 12, 64], "at": 1, "axis": "tp"}]},
            {"match": "*", "shard": []}, {"match": "w*", "trainable": false}],
 "tensors": [{"match": "/h.0/mlp/*/Add_output_0", "shard": [{"dim": 2, "axis": "tp"}]}],
 "stages": [{"match": "h.[0-1].*", "stage": 0}]})",
          fileOf("models/gpt2.colotensor.shard.json")};
}
} // namespace

const std::vector<Target> &fileTargets() {
  static const std::vector<Target> all = {{"onnx", runOnnx, models, Format::Protobuf, nodeModels},
                                          {"annotations", runAnnotations, annotatedModels, Format::Protobuf},
                                          {"plan", runPlan, plans, Format::Protobuf},
                                          {"npz", runNpz, archives, Format::Archive},
                                          {"safetensors", runSafeTensors, safeTensors, Format::SafeTensors},
                                          {"tensors", runTensors, models, Format::Protobuf, nodeModels},
                                          {"sidecar", runSidecar, sidecars, Format::Json}};
  return all;
}

} // namespace hpc::fuzz
