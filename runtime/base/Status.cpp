// Names of the error kinds and the one-line text of a Status.
#include "runtime/base/Status.h"

#include "runtime/base/MessageText.h"

namespace hpc {

const char *name(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::Usage:
    return "usage";
  case ErrorKind::Model:
    return "model";
  case ErrorKind::Unsupported:
    return "unsupported";
  case ErrorKind::Sidecar:
    return "sidecar";
  case ErrorKind::Capacity:
    return "capacity";
  case ErrorKind::Plan:
    return "plan";
  case ErrorKind::Io:
    return "io";
  case ErrorKind::Internal:
    return "internal";
  }
  return "internal";
}

std::string Status::text() const {
  return ok() ? "ok" : std::string("error[") + name(kind()) + "]: " + messageText(message());
}

} // namespace hpc
