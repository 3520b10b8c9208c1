// Reads PTX and runs it, thread by thread: the very text that a driver would compile. It knows the instructions that
// the backend's own kernel and the compiler's code consist of; anything else is an error when the module is loaded.
#pragma once

#include "test/gpu/standin/Machine.h"

#include <map>
#include <string>
#include <vector>

namespace standin::ptx {

struct Frame;
struct Instruction;
/// Does one instruction of one thread.
using Handler = void (*)(Frame &, const Instruction &);

enum class Flow : uint8_t { Plain, Branch, Return, Trap, Barrier, Shuffle };
enum class Space : uint8_t { Generic, Global, Shared, Local, Param };

/// Registers are numbered within a kernel; constants are registers too, set before a thread starts.
struct Instruction {
  Handler handler = nullptr;
  Flow flow = Flow::Plain;
  Space space = Space::Generic;
  int guard = -1; ///< predicate register, or -1
  bool guardIsNegated = false;
  uint8_t bytes = 0;                 ///< of one element of a load or store
  char mode = 0;                     ///< of a shuffle: 'b', 'u', 'd', 'i'
  uint8_t to = 0, from = 0, how = 0; ///< types and manner of a conversion or comparison (PtxOps.cpp)
  bool saturates = false;
  std::vector<int> args; ///< registers: results first
  int64_t offset = 0;    ///< of an address
  int target = -1;       ///< of a branch: index of an instruction
  int line = 0;
};

struct Kernel {
  std::string name;
  std::vector<std::pair<int, int>> params; ///< offset and bytes
  int paramBytes = 0, sharedBytes = 0, localBytes = 0;
  int numRegisters = 0;
  std::vector<std::pair<int, uint64_t>> constants; ///< register, value
  int specials[8] = {-1, -1, -1, -1,
                     -1, -1, -1, -1}; ///< registers of tid.x, ntid.x, ctaid.x, nctaid.x, laneid, dynamic shared
  std::vector<Instruction> code;
};

struct Module {
  std::map<std::string, Kernel> kernels;
  std::map<std::string, void *> variables; ///< tables in memory that every device reads

  Module() = default;
  Module(const Module &) = delete;
  ~Module();
};

/// The text of the error, or empty.
std::string parse(const std::string &text, Module &module);

/// One start of a kernel: blocks one after the other, the threads of a block in an order of `seed`.
struct Launch {
  unsigned blocks = 1, threads = 1, sharedBytes = 0;
  std::vector<std::byte> params;
  uint64_t seed = 0;
};
void run(const Kernel &kernel, const Launch &launch, const Running &running);

/// Where in the address space of a thread shared and local memory begin, seen as generic addresses.
constexpr uint64_t sharedWindow = uint64_t(1) << 60, localWindow = uint64_t(1) << 61;

/// What a handler sees of its thread.
struct Frame {
  uint64_t *registers;
  std::byte *params, *local;
  struct Block *block;
  bool failed = false;
};

/// For loads and stores: the bytes at an address, or null, with the fault noted.
std::byte *address(Frame &frame, const Instruction &instruction, uint64_t at, uint64_t bytes, bool isWrite);

/// Sets the handler of an opcode such as {"add", "rn", "f32"}; false where there is none.
bool decode(const std::vector<std::string> &opcode, Instruction &instruction);

} // namespace standin::ptx
