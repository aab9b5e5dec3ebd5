#include "daemon/rpc/sha256.h"

#include <openssl/sha.h>

namespace wb {

std::string Sha256(std::string_view bytes) {
  static_assert(kSha256Bytes == SHA256_DIGEST_LENGTH);
  std::string digest(kSha256Bytes, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

}  // namespace wb
