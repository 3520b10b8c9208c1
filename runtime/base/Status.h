// Errors as values: Status and Expected<T>. Every error that a user can cause has a kind (printed as a tag and tested)
// and a message that names value, place and remedy. Nothing here throws, and only tools/ turn a Status into an exit
// code.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace hpc {

/// The class of an error, from the user's point of view. All kinds exit 1, Internal exits 2.
enum class ErrorKind {
  Usage,       ///< a flag or argument
  Model,       ///< the ONNX file: corrupt, inconsistent
  Unsupported, ///< a valid model that needs a feature which is missing here
  Sidecar,     ///< sharding annotations
  Capacity,    ///< does not fit the devices
  Plan,        ///< a plan that fails its checks
  Io,          ///< files
  Internal,    ///< a defect of this program
};

/// "usage", "model", ... as printed in messages: `error[usage]: ...`.
const char *name(ErrorKind kind);

/// Success, or one error. Must be looked at.
class [[nodiscard]] Status {
public:
  Status() = default;
  static Status success() { return Status(); }
  static Status error(ErrorKind kind, std::string message) {
    Status status;
    status.failure = {kind, std::move(message)};
    return status;
  }

  bool ok() const { return !failure; }
  explicit operator bool() const = delete; // use ok()
  ErrorKind kind() const { return failure->first; }
  const std::string &message() const { return failure->second; }
  /// "error[kind]: message", the message as a person reads it (MessageText.h)
  std::string text() const;
  /// The process exit code of this status: 0, 1, or 2 for Internal.
  int exitCode() const { return ok() ? 0 : kind() == ErrorKind::Internal ? 2 : 1; }
  /// The same error with "place: " in front of its message.
  Status at(const std::string &place) const { return ok() ? *this : error(kind(), place + ": " + message()); }

private:
  std::optional<std::pair<ErrorKind, std::string>> failure;
};

/// A value or the error that prevented it.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : content(std::move(value)) {}
  Expected(Status status) : failure(std::move(status)) {
    assert(!failure.ok() && "Expected needs a value or an error");
  }

  bool ok() const { return content.has_value(); }
  const Status &status() const { return failure; }
  T &operator*() { return *content; }
  const T &operator*() const { return *content; }
  T *operator->() { return &*content; }
  const T *operator->() const { return &*content; }

private:
  std::optional<T> content;
  Status failure;
};

} // namespace hpc

/// Returns the error of `expression` (a Status) from the current function.
#define HPC_RETURN_IF_ERROR(expression)                                                                                \
  do {                                                                                                                 \
    if (::hpc::Status hpcStatus = (expression); !hpcStatus.ok())                                                       \
      return hpcStatus;                                                                                                \
  } while (false)
