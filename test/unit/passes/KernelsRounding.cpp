// Rounding of f32 to bf16, bit by bit, on the host and on the device: in memory, in registers, and where nothing is to
// be rounded. The reference is runtime/base/HalfFloat.h.
#include "runtime/base/HalfFloat.h"
#include "test/unit/passes/KernelsHarness.h"

namespace hpc::test {
namespace {

/// Every sign and exponent with mantissas about the ties of a bf16; NaNs with payloads in either half among them.
std::vector<uint32_t> awkwardBits() {
  std::vector<uint32_t> bits;
  for (uint32_t upper = 0; upper < 512; ++upper)
    for (uint32_t kept : {0x00u, 0x01u, 0x3Fu, 0x40u, 0x41u, 0x7Eu, 0x7Fu})
      for (uint32_t lower : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu})
        bits.push_back(upper << 23 | kept << 16 | lower);
  return bits;
}

struct Rounding : KernelTest {
  /// What the module's only kernel makes of one operand's bytes: as many buffers as it has results, from host and
  /// device.
  std::vector<std::vector<char *>> run(ArrayRef<char> operand, Tensor placeholder) {
    runPasses();
    SmallVector<nn::FusedOp> regions;
    module->walk([&](nn::FusedOp region) { regions.push_back(region); });
    EXPECT_EQ(regions.size(), 1u);
    host = std::make_unique<LoadedCode>(*module);
    std::vector<std::vector<char *>> results;
    for (bool device : {false, true}) {
      given.push_back(std::make_unique<Arguments>(regions[0], ArrayRef<const Tensor *>{&placeholder}, 16));
      std::vector<void *> &pointers = given.back()->pointers;
      std::memcpy(pointers[0], operand.data(), operand.size());
      if (device)
        onDevice->run(regions[0], pointers, {}, HPC_BLOCKS_FORWARD);
      else
        host->find(regions[0].getSymbol())(pointers.data(), nullptr, 0, int64_t(*regions[0].getRows()));
      results.emplace_back();
      for (size_t i = 1; i < pointers.size(); ++i)
        results.back().push_back(static_cast<char *>(pointers[i]));
    }
    return results;
  }
  std::unique_ptr<LoadedCode> host;
  std::vector<std::unique_ptr<Arguments>> given;
};

TEST_F(Rounding, NearestEvenInMemoryAndInRegisters) {
  std::vector<uint32_t> bits = awkwardBits();
  std::string n = std::to_string(bits.size());
  parse("func.func @main(%x: tensor<" + n + "xf32>) -> (tensor<" + n + "xbf16>, tensor<" + n +
        "xf32>) {\n  %n = nn.cast %x : tensor<" + n + "xf32> -> tensor<" + n + "xbf16>\n  %w = nn.cast %n : tensor<" +
        n + "xbf16> -> tensor<" + n + "xf32>\n  return %n, %w : tensor<" + n + "xbf16>, tensor<" + n + "xf32>\n}");
  ArrayRef<char> bytes(reinterpret_cast<const char *>(bits.data()), bits.size() * 4);
  for (const std::vector<char *> &results : run(bytes, Tensor(DType::F32, {int64_t(bits.size())}))) {
    ASSERT_EQ(results.size(), 2u);
    for (size_t i = 0; i < bits.size(); ++i) {
      uint16_t narrow;
      uint32_t wide;
      std::memcpy(&narrow, results[0] + 2 * i, 2);
      std::memcpy(&wide, results[1] + 4 * i, 4);
      uint16_t expected = floatToBfloat(floatOfBits(bits[i]));
      ASSERT_EQ(narrow, expected) << std::hex << bits[i];
      ASSERT_EQ(wide, uint32_t(expected) << 16) << std::hex << bits[i];
    }
  }
}

// Numbers that are only moved keep their bits, whatever they are: nothing rounds what memory held.
TEST_F(Rounding, MovesKeepBits) {
  for (const char *element : {"bf16", "f16"}) {
    std::string rows = std::string("tensor<256x256x") + element + ">";
    parse("func.func @main(%x: " + rows + ") -> " + rows +
          " {\n  %r = nn.transpose %x {permutation = array<i64: 1, 0>} : " + rows + " -> " + rows +
          "\n  return %r : " + rows + "\n}");
    std::vector<uint16_t> bits(65536);
    for (size_t i = 0; i < bits.size(); ++i)
      bits[i] = uint16_t(i);
    ArrayRef<char> bytes(reinterpret_cast<const char *>(bits.data()), bits.size() * 2);
    for (const std::vector<char *> &results :
         run(bytes, Tensor(element[0] == 'b' ? DType::BF16 : DType::F16, {256, 256})))
      for (size_t row = 0; row < 256; ++row)
        for (size_t column = 0; column < 256; ++column) {
          uint16_t moved;
          std::memcpy(&moved, results[0] + 2 * (row * 256 + column), 2);
          ASSERT_EQ(moved, bits[column * 256 + row]) << element;
        }
  }
}

} // namespace
} // namespace hpc::test
