// The reader's checks of structure: one broken thing at a time, found and named.
#include "runtime/plan/PlanStructure.h"

#include "SamplePlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

using namespace hpc;
using namespace hpc::plan;
using namespace hpc::plan::test;
using testing::HasSubstr;

namespace {

struct BrokenStructure {
  const char *name;
  std::function<void(Plan &)> change;
  const char *message;
};

/// The sample's kernel, which now is an epilogue.
Kernel &biased(Plan &plan) { return action<Kernel>(plan, 1, 1, stage1::Relu) = biasedKernel(); }

const BrokenStructure brokenStructures[] = {
    {"AxisTwice",
     [](Plan &p) {
       p.axes.push_back({"tp", 1});
     },
     "mesh: axis name 'tp' is empty or used twice"},
    {"AxisZero", [](Plan &p) { p.axes[0].size = 0; }, "mesh: size of axis 'tp' is 0; it must be in 1..65536"},
    {"Ranks", [](Plan &p) { p.axes[0].size = 65536; }, "number of ranks is 131072"},
    {"RanksOverflow",
     [](Plan &p) {
       for (const char *name : {"a", "b", "c", "d"})
         p.axes.push_back({name, 65536});
     },
     "number of ranks is 9223372036854775807"},
    {"NoStage", [](Plan &p) { p.stages.clear(); }, "number of stages is 0"},
    {"MicroBatches", [](Plan &p) { p.microBatches = 0; }, "number of micro-batches is 0"},
    {"PortShape", [](Plan &p) { p.inputs[0].shape[0] = -4; }, "input 'x': a size of shape [-4, 3] is -4"},
    {"PortOverflow",
     [](Plan &p) {
       p.outputs[0].shape = {int64_t(1) << 40, int64_t(1) << 40};
     },
     "output 'out': bytes of shape [1099511627776, 1099511627776] is 9223372036854775807"},
    {"LookupRank",
     [](Plan &p) {
       p.inputs[0].lookups = {{{0}, {4}, 0, 7, {}, "wte"}};
     },
     "input 'x': a lookup by 'wte': number of dims is 1; it must be in 2..2"},
    {"LookupBox",
     [](Plan &p) {
       p.inputs[0].lookups = {{{0, 0}, {4, 4}, 0, 7, {}, "wte"}};
     },
     "input 'x': a lookup by 'wte': end is 4; it must be in 0..3"},
    {"LookupBegin",
     [](Plan &p) {
       p.inputs[0].lookups = {{{-1, 0}, {4, 3}, 0, 7, {}, "wte"}};
     },
     "input 'x': a lookup by 'wte': begin is -1; it must be in 0..4"},
    {"LookupByFloats",
     [](Plan &p) {
       p.inputs[0].lookups = {{{0, 0}, {4, 3}, 0, 7, {}, "wte"}};
     },
     "input 'x': a lookup by 'wte': by numbers of f32; only integers name something"},
    {"DefaultInput", [](Plan &p) { p.inputs[0].defaultInput = "none"; },
     "input 'x': its data may not be those of 'none', which is no input of its type and shape with data of its own"},
    {"DefaultInputOfItself", [](Plan &p) { p.inputs[0].defaultInput = "x"; },
     "input 'x': its data may not be those of 'x', which is no input of its type and shape with data of its own"},
    {"WeightBytes", [](Plan &p) { p.weights[1].bytes = 100; },
     "weight 'w1': has 100 bytes; its shape [5, 6] needs 120"},
    {"WeightFile", [](Plan &p) { p.weights[1].file = 0; }, "weight 'w1': file is 0; it must be in -1..-1"},
    {"WeightInline", [](Plan &p) { p.weights[1].inlineData.pop_back(); }, "has 119 bytes of inline data; it needs 120"},
    {"WeightHashes",
     [](Plan &p) {
       p.weights[1].hashes = {1, 2};
     },
     "has 2 hashes; 120 bytes need one per MiB, 1"},
    {"WeightOffset", [](Plan &p) { p.weights[1].offset = INT64_MAX; }, "weight 'w1': offset is 9223372036854775807"},
    {"Code", [](Plan &p) { p.modules[0].bytes = "#!/bin/sh relu"; },
     "code module 0 'x86-64': is not an ELF shared object"},
    {"CodeTarget", [](Plan &p) { p.modules[0].target = "vax"; }, "code module 0 'vax': of an unknown target"},
    {"CodeSymbol", [](Plan &p) { p.modules[0].symbols.push_back("gelu"); },
     "code module 0 'x86-64': lists symbol 'gelu', which its 15 bytes do not define"},
    {"CodeSymbolTwice", [](Plan &p) { p.modules[0].symbols.push_back("relu"); }, "lists symbol 'relu', which is empty"},
    {"CodeSymbolInTwo", [](Plan &p) { p.modules.push_back(p.modules[0]); },
     "code module 1 'x86-64': defines 'relu', as another module of its target does"},
    {"CodeCapability", [](Plan &p) { p.modules[0].capability = 80; }, "compute capability is 80; it must be in 0..0"},
    {"StepScalar", [](Plan &p) { p.inputs[0].isStepScalar = true; },
     "input 'x': a step scalar of shape [4, 3]; it has no dims"},
    {"InputOnRequest", [](Plan &p) { p.inputs[0].onRequest = true; }, "input 'x' is on request; only outputs are"},
    {"OutputOnRequest", [](Plan &p) { p.outputs[0].onRequest = true; },
     "is of every step, but its output is on request"},
    {"LoadOnRequest", [](Plan &p) { p.stages[0].programs[0].instructions[0].onRequest = true; },
     "is on request; only products, kernels, copies and stores are"},
    {"BufferBytes", [](Plan &p) { p.stages[0].buffers[2].bytes = 28; },
     "stage 0, buffer 2 'x': has 28 bytes; its box [2, 3] needs 24"},
    {"BufferUnplaced", [](Plan &p) { p.stages[0].buffers[2].offset = -1; },
     "stage 0, buffer 2 'x': has no offset; run the place phase"},
    {"BufferAlignment", [](Plan &p) { p.stages[0].buffers[2].offset = 32; }, "must be multiples of 64"},
    {"BufferEnd", [](Plan &p) { p.stages[0].buffers[3].offset = 256; },
     "stage 0, buffer 3 'h': ends at byte 280 of the work arena, which has 256 bytes"},
    {"BufferStride", [](Plan &p) { p.stages[0].buffers[4].slotStride = 0; },
     "buffer 4 'y': slot stride is 0; it must be in 48.."},
    {"BufferSlots", [](Plan &p) { p.stages[0].buffers[4].slots = 3; },
     "buffer 4 'y': ends at byte 304 of the work arena"},
    {"TempSlots", [](Plan &p) { p.stages[0].buffers[2].slots = 2; }, "buffer 2 'x': number of slots is 2"},
    {"StepSlots", [](Plan &p) { p.stages[0].buffers[4].lifetime = Lifetime::Step; },
     "buffer 4 'y': number of slots is 2; it must be in 1..1"},
    {"HostForAProgram", [](Plan &p) { p.stages[0].buffers[2].space = Space::Host; },
     "buffer 2 'x': lives for one program and lies in host memory"},
    {"HostOperand",
     [](Plan &p) {
       p.stages[0].buffers[0].space = Space::Host;
       p.stages[0].hostBytes = 64;
     },
     "instruction 2 (gemm, node /w0/MatMul): b is buffer 0 'w0', which lies in host memory; only a copy reaches it"},
    {"HostArena", [](Plan &p) { p.stages[0].buffers[0].space = Space::Host; },
     "buffer 0 'w0': ends at byte 36 of the host arena, which has 0 bytes"},
    {"WeightIndex", [](Plan &p) { p.stages[0].bindings[0].start = StoredWeight{3}; },
     "stage 0, binding 0: buffer 0 'w0': weight is 3; it must be in 0..2"},
    {"Int8Index",
     [](Plan &p) {
       p.stages[0].bindings[0].start = Int8Weight{3, 0, Int8Form::Codes};
     },
     "stage 0, binding 0: buffer 0 'w0': weight is 3; it must be in 0..2"},
    {"Int8Dim",
     [](Plan &p) {
       p.stages[0].bindings[0].start = Int8Weight{0, 2, Int8Form::Codes};
     },
     "dim of weight 'w0' along which lines run is 2; it must be in 0..1"},
    {"Int8Stored",
     [](Plan &p) {
       p.weights[0].dtype = DType::I32;
       p.stages[0].bindings[0].start = Int8Weight{0, 0, Int8Form::Codes};
     },
     "weight 'w0' is i32; only f32 is held in int8"},
    {"Int8Buffer",
     [](Plan &p) {
       p.stages[0].bindings[0].start = Int8Weight{0, 0, Int8Form::Codes};
     },
     "weight 'w0' is held in int8, and a buffer of f32 does not take its codes; codes are i8, scales f32, values f32, "
     "f16 or bf16"},
    {"Int8Scales",
     [](Plan &p) {
       p.stages[0].bindings[0].start = Int8Weight{0, 0, Int8Form::Scales};
     },
     "weight 'w0': slice: view [3, 5] has not the 5 elements of its tensor"},
    {"Int8Saved",
     [](Plan &p) {
       p.stages[0].bindings[0].start = Int8Weight{0, 0, Int8Form::Values};
       p.stages[0].bindings[0].saved = "w0";
       p.stages[0].bindings[0].shape = {3, 5};
     },
     "weight 'w0' is saved as 'w0' from a buffer that holds it in int8"},
    {"BindingBuffer", [](Plan &p) { p.stages[0].bindings[0].buffer = -1; }, "binding 0: buffer is -1"},
    {"BindingLifetime", [](Plan &p) { p.stages[0].bindings[0].buffer = 2; },
     "binding 0: buffer 2 'x' has lifetime program, not session"},
    {"BindingShape",
     [](Plan &p) {
       p.stages[0].bindings[0].shape = {3, 5};
     },
     "has a shape to be saved with, [3, 5], but no key"},
    {"BindingSavedShape", [](Plan &p) { p.stages[0].bindings[0].saved = "w0"; },
     "slice: view [3, 5] has not the 1 element of its tensor"},
    {"StateSlice",
     [](Plan &p) {
       p.stages[0].bindings[0].start = Number{1};
       p.stages[0].bindings[0].slice.start[1] = table({0, 4});
     },
     "stage 0, binding 0: buffer 0 'w0': slice: view dim 1 at coordinate 1 (tp=1) holds 4..5 of 5 indices"},
    {"WeightDType", [](Plan &p) { p.weights[0].dtype = DType::I32; },
     "weight 'w0' is i32, the buffer f32; only f32 is rounded when it is loaded, to f16 or bf16"},
    {"WeightSavedRounded",
     [](Plan &p) {
       p.stages[0].buffers[0].dtype = DType::BF16;
       p.stages[0].buffers[0].bytes = 18;
       p.stages[0].bindings[0].saved = "w0";
       p.stages[0].bindings[0].shape = {3, 5};
     },
     "weight 'w0' is saved as 'w0' from a buffer that holds it rounded to bf16"},
    {"WeightBox", [](Plan &p) { p.stages[0].bindings[0].slice.box[1] = 4; },
     "the slice's box [3, 4] has 48 bytes, the buffer 36"},
    {"WeightByMicroBatch",
     [](Plan &p) {
       p.stages[0].bindings[0].slice.start[0] = table({0, 0, 0, 0});
     },
     "depends on the micro-batch, which what lives for a session cannot"},
    {"SliceView", [](Plan &p) { p.stages[0].bindings[0].slice.view[0] = 4; },
     "slice: view [4, 5] has not the 15 elements of its tensor"},
    {"SliceDims", [](Plan &p) { p.stages[0].bindings[0].slice.box.pop_back(); },
     "slice: view has 2 dims, but there are 2"},
    {"SliceEnd",
     [](Plan &p) {
       p.stages[0].bindings[0].slice.start[1] = table({0, 4});
     },
     "slice: view dim 1 at coordinate 1 (tp=1) holds 4..5 of 5 indices"},
    {"SliceExtent",
     [](Plan &p) {
       p.stages[0].bindings[0].slice.extent[1] = table({4, 1});
     },
     "slice: view dim 1 at coordinate 0 (tp=0) has 4 indices, its box only 3"},
    {"SliceTable",
     [](Plan &p) {
       p.stages[0].bindings[0].slice.start[1] = table({0, 1, 2});
     },
     "table 'start' has 3 values; it needs 1, 2 (ranks of a stage) or 4 (times micro-batches)"},
    {"GemmBuffer", [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).b.place.buffer = 5; },
     "stage 0, program forward, instruction 2 (gemm, node /w0/MatMul): buffer of b is 5; it must be in 0..4"},
    {"GemmOffset", [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).a.place.byteOffset = 2; },
     "byte offset 2 of a is not a multiple of the 4 bytes"},
    {"StrideOfTemporary", [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).a.place.microBatchStride = 4; },
     "bytes from micro-batch to micro-batch of a is 4; it must be in 0..0"},
    {"StrideOfBytes", [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).b.place.microBatchStride = 2; },
     "b moves by 2 bytes a micro-batch, not a multiple of the 4 bytes of an element of buffer 0 'w0'"},
    {"GemmExtent",
     [](Plan &p) {
       action<Gemm>(p, 0, 0, stage0::GemmH).n = table({3, -1});
     },
     "table 'n' has -1 at coordinate 1 (tp=1)"},
    {"GemmStrides", [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).batch = {2}; },
     "1 batch dims, but 0 strides of a"},
    {"GemmDType", [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).a.dtype = DType::F16; },
     "a is buffer 2 'x' of f32; it must be f16"},
    {"GemmIntegers",
     [](Plan &p) {
       p.inputs[0].dtype = p.stages[0].buffers[stage0::X].dtype = DType::I32;
       action<Gemm>(p, 0, 0, stage0::GemmH).a.dtype = DType::I32;
     },
     "a product with i32; operands and sum are floats"},
    {"GemmAccumulate", [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).accumulate = DType::BF16; },
     "sums in bf16 what is stored as f32; sum in a type at least as wide"},
    {"GemmPackedA", [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).a.packed = true; }, "only b may be packed"},
    {"WindowsPacked",
     [](Plan &p) {
       takeWindows(action<Gemm>(p, 0, 0, stage0::GemmH));
       action<Gemm>(p, 0, 0, stage0::GemmH).b.packed = true;
     },
     "windows are floats that are neither packed nor have a leading dim"},
    {"WindowsLeadingDim",
     [](Plan &p) {
       takeWindows(action<Gemm>(p, 0, 0, stage0::GemmH));
       action<Gemm>(p, 0, 0, stage0::GemmH).b.ld = 3;
     },
     "windows are floats that are neither packed nor have a leading dim"},
    {"WindowsOfNoDim",
     [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).windows.emplace(); }, "windows over 0 dims; 1 to 32 are possible"},
    {"WindowsDims",
     [](Plan &p) {
       takeWindows(action<Gemm>(p, 0, 0, stage0::GemmH));
       action<Gemm>(p, 0, 0, stage0::GemmH).windows->low = {0, 0};
     },
     "windows over 1 dims have 2 sizes, counts, strides, dilations or paddings"},
    {"WindowsChannels",
     [](Plan &p) {
       takeWindows(action<Gemm>(p, 0, 0, stage0::GemmH));
       action<Gemm>(p, 0, 0, stage0::GemmH).windows->channels = 0;
     },
     "windows of 0 channels"},
    {"WindowsStride",
     [](Plan &p) {
       takeWindows(action<Gemm>(p, 0, 0, stage0::GemmH));
       action<Gemm>(p, 0, 0, stage0::GemmH).windows->strides = {0};
     },
     "windows have a size, count, stride or dilation of 0 along dim 0"},
    {"WindowsPadding",
     [](Plan &p) {
       takeWindows(action<Gemm>(p, 0, 0, stage0::GemmH));
       action<Gemm>(p, 0, 0, stage0::GemmH).windows->low = {-1};
     },
     "windows have a padding of -1 along dim 0"},
    {"WindowsReach",
     [](Plan &p) {
       takeWindows(action<Gemm>(p, 0, 0, stage0::GemmH));
       action<Gemm>(p, 0, 0, stage0::GemmH).windows->dilations = {int64_t(1) << 45};
     },
     "windows reach position 105553116266499 of dim 0"},
    {"WindowsElements",
     [](Plan &p) {
       takeWindows(action<Gemm>(p, 0, 0, stage0::GemmH));
       action<Gemm>(p, 0, 0, stage0::GemmH).windows->channels = int64_t(1) << 45;
     },
     "windows of more than 2^46 elements"},
    {"WindowsRows",
     [](Plan &p) {
       takeWindows(action<Gemm>(p, 0, 0, stage0::GemmH));
       action<Gemm>(p, 0, 0, stage0::GemmH).windows->sizes = {2};
     },
     "table 'rows of windows' has 3"},
    {"WindowsColumns",
     [](Plan &p) {
       takeWindows(action<Gemm>(p, 0, 0, stage0::GemmH));
       action<Gemm>(p, 0, 0, stage0::GemmH).windows->counts = {2};
     },
     "table 'columns of windows' has 3"},
    {"GemmTransposedC", [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).c.transpose = true; },
     "c is neither packed nor transposed"},
    {"GemmOffsetOfC", [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).c.offset = 4; }, "c has an offset; only a and b are read from one on"},
    {"GemmOffsetOfA", [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).a.offset = 6; },
     "offset of a has 6, not a multiple of the 4 bytes of an element"},
    {"GemmOffsetOfBBelow", [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).b.offset = -4; }, "table 'offset of b' has -4 at coordinate 0"},
    {"GemmAddToC", [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).addToC = 2; },
     "table 'add to c' has 2 at coordinate 0 (tp=0); it must be in 0..1"},
    {"KernelSymbol", [](Plan &p) { action<Kernel>(p, 1, 1, stage1::Relu).symbol = "gelu"; },
     "stage 1, program forward, instruction 2 (kernel, node /Relu): calls 'gelu', which none "
     "of the plan's code for 'x86-64' defines"},
    {"KernelInOneModule",
     [](Plan &p) {
       p.modules.push_back({"ptx", {}, 80, "gelu", {"gelu"}});
     },
     "calls 'relu', which none of the plan's code for 'ptx' defines"},
    {"KernelIdleArgument", [](Plan &p) { action<Kernel>(p, 1, 1, stage1::Relu).args[0].reads = false; },
     "argument 0 is neither read nor written"},
    {"KernelThreads", [](Plan &p) { action<Kernel>(p, 1, 1, stage1::Relu).launch.threads = 2048; },
     "table 'threads' has 2048 at coordinate 0 (tp=0); it must be in 0..1024"},
    {"KernelBlocks",
     [](Plan &p) {
       action<Kernel>(p, 1, 1, stage1::Relu).launch.blocks = table({1, -1});
     },
     "table 'blocks' has -1 at coordinate 1 (tp=1)"},
    {"KernelShared",
     [](Plan &p) {
       action<Kernel>(p, 1, 1, stage1::Relu).launch.sharedBytes = table({1, 2, 3});
     },
     "table 'shared bytes' has 3 values"},
    {"AttentionArgument",
     [](Plan &p) {
       Attention a = attention();
       a.query.argument = 2;
       action<Kernel>(p, 1, 1, stage1::Relu).attention = a;
     },
     "attention: query is argument 2 of 2"},
    {"AttentionWritten",
     [](Plan &p) {
       Attention a = attention();
       a.results[0].argument = 0;
       action<Kernel>(p, 1, 1, stage1::Relu).attention = a;
     },
     "attention: result is argument 0, which the kernel does not write"},
    {"AttentionRead",
     [](Plan &p) {
       Attention a = attention();
       a.bias.argument = 1;
       action<Kernel>(p, 1, 1, stage1::Relu).attention = a;
     },
     "attention: bias is argument 1, which the kernel does not read"},
    {"AttentionType",
     [](Plan &p) {
       Attention a = attention();
       a.key.dtype = DType::F16;
       action<Kernel>(p, 1, 1, stage1::Relu).attention = a;
     },
     "attention: key is f16 in a buffer of f32"},
    {"AttentionStride",
     [](Plan &p) {
       Attention a = attention();
       a.value.stride[2] = -1;
       action<Kernel>(p, 1, 1, stage1::Relu).attention = a;
     },
     "attention: value has the stride -1"},
    {"AttentionOffset",
     [](Plan &p) {
       Attention a = attention();
       a.value.offset = -1;
       action<Kernel>(p, 1, 1, stage1::Relu).attention = a;
     },
     "attention: value has the stride 0 and the offset -1"},
    {"AttentionBytes",
     [](Plan &p) {
       Attention a = attention();
       a.results[0].stride[2] = 1 << 20;
       action<Kernel>(p, 1, 1, stage1::Relu).attention = a;
     },
     "attention: result reaches to byte 4194312 of an argument of 32"},
    {"AttentionOverflow",
     [](Plan &p) {
       Attention a = attention();
       a.query.stride[2] = INT64_MAX;
       action<Kernel>(p, 1, 1, stage1::Relu).attention = a;
     },
     "attention: query reaches to byte 9223372036854775807 of an argument of 32"},
    {"AttentionSize",
     [](Plan &p) {
       Attention a = attention();
       a.keys = -1;
       action<Kernel>(p, 1, 1, stage1::Relu).attention = a;
     },
     "attention: a size is -1"},
    {"AttentionGroups",
     [](Plan &p) {
       Attention a = attention();
       a.groups = 2;
       action<Kernel>(p, 1, 1, stage1::Relu).attention = a;
     },
     "attention: 2 groups do not divide 1 heads"},
    {"AttentionDiagonal",
     [](Plan &p) {
       Attention a = attention();
       a.causalOffset = -1;
       action<Kernel>(p, 1, 1, stage1::Relu).attention = a;
     },
     "attention: the causal offset is -1"},
    {"AttentionResults",
     [](Plan &p) {
       Attention a = attention();
       a.kind = AttentionKind::Backward;
       action<Kernel>(p, 1, 1, stage1::Relu).attention = a;
     },
     "attention gradient: has 1 results and no gradient"},
    {"EpilogueArguments", [](Plan &p) { action<Kernel>(p, 1, 1, stage1::Relu).epilogue = epilogue(); },
     "epilogue bias and gelu: the kernel has 2 arguments and 2 scalars; it must have product, bias and result alone"},
    {"EpilogueScalars", [](Plan &p) { biased(p).scalars = {1}; }, "the kernel has 3 arguments and 1 scalars"},
    {"EpilogueOfItself", [](Plan &p) { biased(p).epilogue->bias = 0; }, "product and bias are both argument 0"},
    {"EpilogueProductOutside", [](Plan &p) { biased(p).epilogue->product = -1; }, "product is argument -1 of 3"},
    {"EpilogueBiasOutside", [](Plan &p) { biased(p).epilogue->bias = 3; }, "bias is argument 3 of 3"},
    {"EpilogueWritten", [](Plan &p) { biased(p).epilogue->bias = 2; },
     "bias is argument 2, which must be read and not written"},
    {"EpilogueResultRead", [](Plan &p) { biased(p).args[2].reads = true; },
     "the result is argument 2, which must be written and not read"},
    {"EpilogueTypes",
     [](Plan &p) {
       Buffer half = buffer("half", Lifetime::Program, {4}, 192);
       half.dtype = DType::F16;
       half.bytes = 8;
       p.stages[1].buffers.push_back(half);
       biased(p).args[1] = {{5, 0}, 8, true, false};
     },
     "epilogue bias and gelu: takes f16 to f32; all must be of one float type"},
    {"EpilogueSizes", [](Plan &p) { biased(p).args[2].bytes = 16; },
     "the product has 32 bytes, the result 16; they must be as large"},
    {"EpilogueRow", [](Plan &p) { biased(p).args[1].bytes = 12; }, "a bias of 12 bytes is no row of a product of 32"},
    {"EpilogueNoRow", [](Plan &p) { biased(p).args[1].bytes = 0; }, "a bias of 0 bytes is no row of a product of 32"},
    {"When",
     [](Plan &p) {
       p.stages[0].programs[0].instructions[0].when = table({1, 2});
     },
     "instruction 0 (wait): table 'when' has 2 at coordinate 1 (tp=1); it must be in 0..1"},
    {"CollectiveRequest", [](Plan &p) { action<Collective>(p, 0, 0, stage0::Reduce).request = 1; },
     "instruction 4 (all_reduce, node /w1/MatMul): request is 1; it must be in 0..0"},
    {"RequestSlots", [](Plan &p) { p.stages[0].requests[0] = 0; },
     "stage 0: slots of request 0 is 0; it must be in 1..65536"},
    {"CollectiveAxis", [](Plan &p) { action<Collective>(p, 0, 0, stage0::Reduce).axes = {"dp"}; },
     "axis 'dp' is none of the mesh's axes"},
    {"CollectiveNoAxis", [](Plan &p) { action<Collective>(p, 0, 0, stage0::Reduce).axes = {}; },
     "a collective over no axis"},
    {"CollectiveTwice",
     [](Plan &p) {
       action<Collective>(p, 0, 0, stage0::Reduce).axes = {"tp", "tp"};
     },
     "axis 'tp' is listed twice"},
    {"CollectiveDType", [](Plan &p) { action<Collective>(p, 0, 0, stage0::Reduce).dtype = DType::I32; },
     "src is buffer 4 'y' of f32; it must be i32"},
    {"SourceOfNoPermute", [](Plan &p) { action<Collective>(p, 0, 0, stage0::Reduce).source = table({}); },
     "table 'source' has 0 values"},
    {"PermuteSource",
     [](Plan &p) {
       action<Collective>(p, 0, 0, stage0::Reduce).kind = CollectiveKind::Permute;
       action<Collective>(p, 0, 0, stage0::Reduce).source = table({1, 2});
     },
     "table 'source' has 2 at coordinate 1 (tp=1); it must be in 0..1"},
    {"SendPeer", [](Plan &p) { action<Send>(p, 0, 0, stage0::SendY).peer = table({2, 4}); },
     "table 'peer' has 4 at coordinate 1 (tp=1); it must be in -1..3"},
    {"SendRequest", [](Plan &p) { action<Send>(p, 0, 0, stage0::SendY).request = 1; },
     "request is 1; it must be in 0..0"},
    {"WaitRequest", [](Plan &p) { action<Wait>(p, 1, 1, stage1::WaitY).request = -1; }, "request is -1"},
    {"LoadInput", [](Plan &p) { action<LoadInput>(p, 0, 0, stage0::LoadX).input = 1; },
     "input is 1; it must be in 0..0"},
    {"StoreOwner", [](Plan &p) { action<StoreOutput>(p, 1, 1, stage1::StoreO).owner = 2; }, "table 'owner' has 2"},
    {"ProgramTwice", [](Plan &p) { p.stages[0].programs[1].kind = ProgramKind::Forward; },
     "stage 0, program forward: is there twice"},
    {"ProgramChunk", [](Plan &p) { p.stages[0].programs[1].chunk = -1; },
     "program drain -1: chunk is -1; it must be in 0..65535"},
    {"UpdateMicroBatch", [](Plan &p) { p.stages[0].programs[0].kind = ProgramKind::Update; },
     "schedule step 1: micro-batch of an update is 1; it must be in 0..0"},
    {"StepProgram", [](Plan &p) { p.stages[0].schedule[1].program = 2; }, "stage 0: schedule step 1: program is 2"},
    {"StepMicroBatch", [](Plan &p) { p.stages[0].schedule[1].microBatch = 2; }, "schedule step 1: micro-batch is 2"},
};

void PrintTo(const BrokenStructure &value, std::ostream *stream) { *stream << value.name; }

class PlanStructure : public testing::TestWithParam<BrokenStructure> {};

TEST_P(PlanStructure, Fault) {
  Plan plan = samplePlan();
  GetParam().change(plan);
  Status status = checkStructure(plan);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.kind(), ErrorKind::Plan);
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(Cases, PlanStructure, testing::ValuesIn(brokenStructures),
                         [](const testing::TestParamInfo<BrokenStructure> &info) { return info.param.name; });

TEST(PlanStructureGood, Sample) {
  Status status = checkStructure(samplePlan());
  EXPECT_TRUE(status.ok()) << status.text();
}

// A coordinate that holds nothing may have any start: c * block lies beyond the end there.
TEST(PlanStructureGood, EmptyRangeBeyondTheEnd) {
  Plan plan = samplePlan();
  Slice &slice = plan.stages[0].bindings[0].slice;
  slice.start[1] = table({0, 6});
  slice.extent[1] = table({3, 0});
  EXPECT_TRUE(checkStructure(plan).ok());
}

} // namespace
