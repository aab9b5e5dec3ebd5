#include "tests/support/certificates.h"

#include <chrono>

#include <sys/stat.h>

#include "tests/support/catch.h"
#include "tests/support/run_to_end.h"
#include "tests/support/time_slack.h"
#include "tests/support/whole_file.h"

namespace wb::test {
namespace {

std::vector<std::string> NewKey() {
  return {"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"};
}

std::vector<std::string> With(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

void Openssl(const std::vector<std::string>& arguments) {
  const ProgramEnd end =
      RunToEnd(With({"/usr/bin/openssl"}, arguments), {}, Slack(std::chrono::seconds(10)));
  CAPTURE(arguments, end.err);
  REQUIRE(end.exit_code == 0);
}

Authority::Authority(const std::string& name) {
  Openssl(With({"req", "-x509", "-days", "2", "-subj", "/CN=" + name, "-keyout",
                folder_.path() + "/ca.key", "-out", ca()},
               NewKey()));
}

void Authority::Issue(const std::string& name, const std::string& names, Valid valid) const {
  const std::string request = folder_.path() + "/" + name + ".csr";
  const std::string extensions = folder_.path() + "/" + name + ".ext";
  REQUIRE(WriteWholeFile(extensions, "basicConstraints=critical,CA:FALSE\n" +
                                         (names.empty() ? "" : "subjectAltName=" + names + "\n")));
  Openssl(With({"req", "-new", "-subj", "/CN=" + name, "-keyout", key(name), "-out", request},
               NewKey()));
  Openssl({"x509", "-req", "-in", request, "-CA", ca(), "-CAkey", folder_.path() + "/ca.key",
           "-CAcreateserial", "-days", valid == Valid::kNow ? "2" : "-1", "-extfile", extensions,
           "-out", cert(name)});
  REQUIRE(::chmod(key(name).c_str(), 0640) == 0);
}

std::string Authority::Yaml(const std::string& name,
                            const Authority& trusts,
                            const std::string& more) const {
  return "tls: {cert: " + cert(name) + ", key: " + key(name) + ", ca: " + trusts.ca() +
         (more.empty() ? "" : ", " + more) + "}\n";
}

}  // namespace wb::test
