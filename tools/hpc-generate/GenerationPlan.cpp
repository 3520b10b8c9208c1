// Sizes follow from the prompts. Positions are rounded up, so that a chunk of about the longest prompt divides them; not where the model has
// no more than are needed.
#include "tools/hpc-generate/GenerationPlan.h"

#include "passes/Driver/Generation.h"
#include "passes/Driver/RequestDegrees.h"
#include "passes/Phases.h"
#include "runtime/plan/PlanStructure.h"
#include "tools/ExitCode.h"
#include "tools/compiling/RequestFlags.h"

#include "llvm/Support/MathExtras.h"

namespace hpc {

static Expected<CompileRequest> requestOf(const Arguments &arguments) {
  CompileRequest request;
  request.input = arguments.text("model");
  HPC_RETURN_IF_ERROR(readRequest(arguments, /*trains=*/false, request));
  request.options.weights = arguments.text("weights-type");
  request.options.target = arguments.text("backend");
  Expected<std::string> targets = kernelTargets(request.options.target);
  HPC_RETURN_IF_ERROR(targets.status());
  return request;
}

static Expected<dist::Mesh> degreesOf(CompileRequest request) {
  Expected<std::optional<SpecFile>> spec = findSpec(request.spec, request.configuration, request.input);
  HPC_RETURN_IF_ERROR(spec.status());
  HPC_RETURN_IF_ERROR(takeDegrees(request, *spec));
  return request.options.degrees;
}

Expected<int64_t> ranksOfGeneration(const Arguments &arguments) {
  Expected<CompileRequest> request = requestOf(arguments);
  HPC_RETURN_IF_ERROR(request.status());
  Expected<dist::Mesh> degrees = degreesOf(*request);
  HPC_RETURN_IF_ERROR(degrees.status());
  return dist::ranksOf(*degrees);
}

/// Rows of the default batch: more make a step slower, and the memory of caches grows with them.
constexpr int64_t usualRows = 8;
/// Positions of the default chunk: products of more rows are hardly cheaper a row.
constexpr int64_t usualChunk = 64;

/// Whole prompts of --beams rows, and as many for each copy and micro-batch.
static int64_t batchOf(const GenerationSizes &sizes, const dist::Mesh &degrees) {
  int64_t pieces = 1;
  for (const dist::Mesh::Axis &axis : degrees.axes)
    if (axis.role == dist::AxisRole::Data || axis.role == dist::AxisRole::Time)
      pieces *= axis.size;
  const int64_t most = std::max(usualRows / sizes.rowsOfOne, int64_t(1)) * sizes.rowsOfOne;
  return llvm::alignTo(std::min(sizes.rows, most), pieces);
}

/// Whether a model that cannot be loaded has no fault but too few positions.
static bool loadsShort(CompileRequest request, MLIRContext &context, DiagnosticPrinter &diagnostics) {
  request.options.maxLength = 2;
  request.prefillChunk = 1;
  return Compilation(decodeRequest(request), context, diagnostics).load().ok();
}

Expected<plan::Plan> makeGenerationPlan(const Arguments &arguments, const GenerationSizes &sizes) {
  Expected<CompileRequest> request = requestOf(arguments);
  HPC_RETURN_IF_ERROR(request.status());
  Expected<dist::Mesh> degrees = degreesOf(*request);
  HPC_RETURN_IF_ERROR(degrees.status());
  const int64_t least = std::max<int64_t>(sizes.positions, 2); // at least two chunks
  const int64_t usual = int64_t(llvm::bit_floor(uint64_t(std::min({sizes.prompt, usualChunk, least / 2}))));
  const int64_t chunk = arguments.whole("prefill-chunk").value_or(usual);
  request->batch = arguments.whole("batch").value_or(batchOf(sizes, *degrees));
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  context.disableMultithreading(); // remarks come in one order
  DiagnosticPrinter diagnostics(&context, arguments.text("remarks") == "all", [](DiagnosticSeverity severity, ErrorKind kind, const std::string &text) {
    DiagnosticPrinter::print(toolName(), severity, kind, text);
  });
  std::unique_ptr<Compilation> decode;
  const int64_t rounded = std::max<int64_t>(llvm::alignTo(least, chunk), 2 * chunk);
  for (int64_t positions : {rounded, least}) {
    request->options.maxLength = positions;
    request->prefillChunk = std::min(chunk, positions / 2);
    decode = std::make_unique<Compilation>(decodeRequest(*request), context, diagnostics);
    const Status loaded = decode->load();
    if (loaded.ok())
      break;
    if (positions == least)
      return loaded.message().empty() || !loadsShort(*request, context, diagnostics) ? loaded : loaded.at(sizes.place);
  }
  for (auto step : {&Compilation::runPhases, &Compilation::makePlan})
    HPC_RETURN_IF_ERROR(((*decode).*step)());
  Expected<Generation> generation = makeGeneration(*decode, context, diagnostics);
  HPC_RETURN_IF_ERROR(generation.status());
  return std::move(generation->merged.plan);
}

} // namespace hpc
