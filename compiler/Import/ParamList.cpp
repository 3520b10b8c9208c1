// The text of --list-params. Users are followed through views (a transposed weight is used by the product behind the
// transpose).
#include "compiler/Import/ParamList.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/ElementType.h"
#include "compiler/Location.h"

namespace hpc {
namespace {

/// "node (nn.op) in module", each once.
void collectUsers(Value value, std::vector<std::string> &users) {
  for (Operation *user : value.getUsers()) {
    if (isa<nn::TransposeOp, nn::ReshapeOp, nn::CastOp, nn::BroadcastOp>(user)) {
      collectUsers(user->getResult(0), users);
      continue;
    }
    std::string path = modulePath(user->getLoc());
    std::string text =
        nodeName(user->getLoc()) + " (" + user->getName().getStringRef().str() + (path.empty() ? ")" : ") in " + path);
    if (!llvm::is_contained(users, text))
      users.push_back(text);
  }
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
    std::vector<std::string> users;
    collectUsers(op.getResult(), users);
    llvm::sort(users);
    for (const std::string &user : users)
      stream << "  used by " << user << "\n";
  });
  return text + std::to_string(count) + " parameters, " + std::to_string(elements) + " elements, " +
         std::to_string(bytes) + " bytes\n";
}

} // namespace hpc
