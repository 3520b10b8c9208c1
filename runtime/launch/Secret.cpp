// Calls of libcrypto.
#include "runtime/launch/Secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

namespace hpc::launch {

Expected<std::string> makeNonce() {
  std::string nonce(nonceBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char *>(nonce.data()), int(nonce.size())) != 1)
    return Status::error(ErrorKind::Io, "this machine gives no random numbers, which the rendezvous needs");
  return nonce;
}

std::string prove(const std::string &secret, const std::string &who, const std::string &content) {
  std::string proof(proofBytes, '\0'), text = who + '\0' + content;
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret.data(), int(secret.size()), reinterpret_cast<const unsigned char *>(text.data()),
       text.size(), reinterpret_cast<unsigned char *>(proof.data()), &size);
  return proof;
}

bool sameProof(const std::string &left, const std::string &right) {
  return left.size() == right.size() && CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

Status checkSecret(const std::string &secret) {
  constexpr size_t shortest = 16;
  if (secret.empty() || secret.size() >= shortest)
    return Status::success();
  return Status::error(ErrorKind::Usage, "HPC_SECRET has " + std::to_string(secret.size()) +
                                             " characters, which can be "
                                             "guessed; give at least " +
                                             std::to_string(shortest) + ", for example of `openssl rand -hex 32`");
}

} // namespace hpc::launch
