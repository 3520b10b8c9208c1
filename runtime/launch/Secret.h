// Proof of the shared secret: HMAC-SHA256 by libcrypto over both sides' nonces, so that bytes seen on the wire cannot
// be used again. It keeps strangers out; it neither encrypts nor signs later messages.
#pragma once

#include "runtime/base/Status.h"

#include <string>

namespace hpc::launch {

constexpr size_t nonceBytes = 32, proofBytes = 32;

/// Random bytes that cannot be guessed.
Expected<std::string> makeNonce();
/// The proof of `content` in the role `who`: "process" and "rendezvous" have different proofs, so that none is echoed.
std::string prove(const std::string &secret, const std::string &who, const std::string &content);
/// In constant time.
bool sameProof(const std::string &left, const std::string &right);
/// Refuses a secret that can be guessed from one recorded handshake.
Status checkSecret(const std::string &secret);

} // namespace hpc::launch
