// Who knows the shared secret: HMAC-SHA256 by libcrypto over both sides' nonces, so that nothing seen on the wire can
// be used again. It keeps strangers out; it neither hides nor signs what is said afterwards.
#pragma once

#include "runtime/base/Status.h"

#include <string>

namespace hpc::launch {

constexpr size_t nonceBytes = 32, proofBytes = 32;

/// Random bytes that cannot be guessed.
Expected<std::string> makeNonce();
/// Of `content`, in the role of `who`: "process" and "rendezvous" give different proofs, so that neither can be echoed.
std::string prove(const std::string &secret, const std::string &who, const std::string &content);
/// In constant time.
bool sameProof(const std::string &left, const std::string &right);
/// Refuses what can be guessed from one handshake that somebody recorded.
Status checkSecret(const std::string &secret);

} // namespace hpc::launch
