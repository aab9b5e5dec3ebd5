#pragma once

#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace wb::test {

/// A certificate authority of a test, made by the openssl command in a folder of its own. What
/// cannot be made fails the test.
class Authority {
 public:
  explicit Authority(const std::string& name = "test CA");

  /// How long a certificate is valid.
  enum class Valid { kNow, kExpired };

  /// Makes NAME.crt and NAME.key, of mode 0640, for `names` as openssl writes them
  /// ("IP:127.0.0.1,DNS:lead"; empty: for none).
  void Issue(const std::string& name, const std::string& names, Valid valid = Valid::kNow) const;

  std::string ca() const { return folder_.path() + "/ca.crt"; }
  std::string cert(const std::string& name) const { return folder_.path() + "/" + name + ".crt"; }
  std::string key(const std::string& name) const { return folder_.path() + "/" + name + ".key"; }
  /// The line of a configuration that has `name`'s certificate and key and the CA of `trusts`;
  /// `more` is put into the section.
  std::string Yaml(const std::string& name,
                   const Authority& trusts,
                   const std::string& more = "") const;
  std::string Yaml(const std::string& name) const { return Yaml(name, *this); }

 private:
  TempFolder folder_;
};

/// Runs `openssl ARGUMENT...` to its end.
void Openssl(const std::vector<std::string>& arguments);

}  // namespace wb::test
