// Placement of random programs, checked by a brute force that knows nothing of live ranges: it walks the instructions
// and keeps, per byte of the work arena, who wrote it last; a read must find what its own buffer's last writer left.
#include "passes/Place/Place.h"

#include <gtest/gtest.h>
#include <random>

namespace hpc {
namespace {

using plan::Buffer;

/// A chain of copies between buffers of random sizes; every buffer is written once and read at random places later.
plan::Plan randomPlan(std::mt19937 &random) {
  plan::Plan plan;
  plan.axes = {{"tp", 1}};
  plan::Stage &stage = plan.stages.emplace_back();
  plan::Program &program = stage.programs.emplace_back();
  int count = 3 + int(random() % 20);
  for (int i = 0; i < count; ++i) {
    Buffer buffer;
    buffer.name = "b" + std::to_string(i);
    buffer.box = {int64_t(1 + random() % 100)};
    buffer.bytes = buffer.box[0] * 4;
    stage.buffers.push_back(buffer);
    plan::Kernel kernel;
    kernel.symbol = "k";
    for (int reads = 0; i > 0 && reads < 2; ++reads) {
      int read = int(random() % i);
      kernel.args.push_back({{read, 0}, stage.buffers[read].bytes, true, false});
    }
    kernel.args.push_back({{i, 0}, buffer.bytes, false, true});
    program.instructions.push_back({kernel, "node"});
  }
  return plan;
}

TEST(PlaceRandom, NoReadFindsAnotherBuffersBytes) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    plan::Plan plan = randomPlan(random);
    ASSERT_TRUE(placeBuffers(plan).ok());
    const plan::Stage &stage = plan.stages[0];
    std::vector<int> owner(size_t(stage.workBytes), -1);
    for (const plan::Instruction &instruction : stage.programs[0].instructions) {
      const auto &kernel = std::get<plan::Kernel>(instruction.action);
      for (bool write : {false, true}) // all reads, then the writes: a kernel's result may not lie on its operands
        for (size_t arg = 0; arg < kernel.args.size(); ++arg) {
          const Buffer &buffer = stage.buffers[size_t(kernel.args[arg].place.buffer)];
          ASSERT_EQ(buffer.offset % 64, 0);
          ASSERT_LE(buffer.offset + buffer.bytes, stage.workBytes);
          if (kernel.args[arg].writes != write)
            continue;
          for (int64_t byte = buffer.offset; byte < buffer.offset + buffer.bytes; ++byte) {
            if (write) {
              for (size_t other = 0; other < kernel.args.size(); ++other)
                ASSERT_FALSE(!kernel.args[other].writes && owner[size_t(byte)] == kernel.args[other].place.buffer)
                    << "round " << round << ": a result on an operand of the same kernel";
              owner[size_t(byte)] = kernel.args[arg].place.buffer;
            } else {
              ASSERT_EQ(owner[size_t(byte)], kernel.args[arg].place.buffer) << "round " << round << ", byte " << byte;
            }
          }
        }
    }
  }
}

// A program of 100,000 instructions, each of which reads the one before: asking every buffer for every other would be
// 5e9 questions.
TEST(PlaceRandom, LongProgramsArePlacedAsTheyLive) {
  plan::Plan plan;
  plan.axes = {{"tp", 1}};
  plan::Stage &stage = plan.stages.emplace_back();
  plan::Program &program = stage.programs.emplace_back();
  constexpr int count = 100000;
  for (int i = 0; i < count; ++i) {
    Buffer buffer;
    buffer.box = {16 + i % 7};
    buffer.bytes = buffer.box[0] * 4;
    stage.buffers.push_back(buffer);
    plan::Kernel kernel;
    kernel.symbol = "k";
    if (i > 0)
      kernel.args.push_back({{i - 1, 0}, stage.buffers[size_t(i) - 1].bytes, true, false});
    kernel.args.push_back({{i, 0}, buffer.bytes, false, true});
    program.instructions.push_back({kernel, ""});
  }
  ASSERT_TRUE(placeBuffers(plan).ok());
  EXPECT_LE(stage.workBytes, 4 * 128); // two live at a time
}

TEST(PlaceRandom, TheArenaIsCloseToWhatLivesAtOnce) {
  std::mt19937 random(11);
  double sum = 0;
  constexpr int rounds = 200;
  for (int round = 0; round < rounds; ++round) {
    plan::Plan plan = randomPlan(random);
    ASSERT_TRUE(placeBuffers(plan).ok());
    const plan::Stage &stage = plan.stages[0];
    const auto &instructions = stage.programs[0].instructions;
    // Last use of every buffer, then the most aligned bytes that live at one instruction.
    std::vector<size_t> last(stage.buffers.size());
    for (size_t i = 0; i < instructions.size(); ++i)
      for (const plan::KernelArg &arg : std::get<plan::Kernel>(instructions[i].action).args)
        last[size_t(arg.place.buffer)] = i;
    int64_t most = 0;
    for (size_t i = 0; i < instructions.size(); ++i) {
      int64_t live = 0;
      for (size_t buffer = 0; buffer <= i; ++buffer) // buffer b is written by instruction b
        if (last[buffer] >= i)
          live += (stage.buffers[buffer].bytes + 63) / 64 * 64;
      most = std::max(most, live);
    }
    ASSERT_GE(stage.workBytes, most);
    sum += double(stage.workBytes) / double(most);
  }
  EXPECT_LT(sum / rounds, 1.02); // the largest first alone: 1.03
}

} // namespace
} // namespace hpc
