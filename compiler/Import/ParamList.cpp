// The text of --list-params. Users are followed through views (a product after a transpose is a user of the transposed
// weight).
#include "compiler/Import/OnnxImporter.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/ElementType.h"
#include "compiler/Location.h"
#include "runtime/base/CountText.h"

#include <set>

namespace hpc {
namespace {

/// "node (nn.op) in module".
std::set<std::string> usersOf(Value parameter) {
  std::set<std::string> users;
  llvm::SetVector<Operation *> open(parameter.user_begin(),
                                    parameter.user_end()); // each once, however many ways lead to it
  for (size_t next = 0; next < open.size(); ++next) {
    Operation *user = open[next];
    if (isa<nn::TransposeOp, nn::ReshapeOp, nn::CastOp, nn::BroadcastOp>(user)) {
      open.insert(user->user_begin(), user->user_end());
      continue;
    }
    std::string path = modulePath(user->getLoc());
    users.insert(nodeName(user->getLoc()) + " (" + user->getName().getStringRef().str() +
                 (path.empty() ? ")" : ") in " + path));
  }
  return users;
}

} // namespace

std::string listParameters(ModuleOp module) {
  std::string text;
  int64_t elements = 0, bytes = 0, count = 0;
  module.walk([&](nn::ParameterOp op) {
    auto type = nn::tensorType(op.getResult());
    int64_t size = type.getNumElements() * byteSize(dtypeOf(type));
    ++count;
    elements += type.getNumElements();
    bytes += size;
    text += op.getName().str() + "\n  shape   [";
    llvm::raw_string_ostream stream(text);
    llvm::interleaveComma(type.getShape(), stream);
    stream << "] " << name(dtypeOf(type)) << ", " << size << " bytes\n";
    if (auto aliases = op.getAliases())
      for (Attribute alias : *aliases)
        stream << "  alias   " << cast<StringAttr>(alias).getValue() << "\n";
    for (const std::string &user : usersOf(op.getResult()))
      stream << "  used by " << user << "\n";
  });
  return text + countText(count, "parameter") + ", " + countText(elements, "element") + ", " + countText(bytes, "byte") +
         "\n";
}

} // namespace hpc
