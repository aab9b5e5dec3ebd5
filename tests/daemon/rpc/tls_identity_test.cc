#include "daemon/rpc/tls/tls_identity.h"

#include <filesystem>
#include <string>
#include <vector>

#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/temp_folder.h"
#include "tests/support/whole_file.h"

namespace wb {
namespace {

using test::Authority;

TlsFiles FilesOf(const Authority& authority, const std::string& name) {
  return {authority.cert(name), authority.key(name), authority.ca()};
}

std::string LoadingSays(const TlsFiles& files) {
  return std::string(TlsIdentity::Load(files).status().message());
}

TEST_CASE("An identity knows its names, and peers of its CA by theirs", "[rpc][tls]") {
  const Authority authority;
  authority.Issue("n0", "IP:127.0.0.1,IP:::1,DNS:lead.cluster,DNS:*.nodes.cluster");
  const auto n0 = TlsIdentity::Load(FilesOf(authority, "n0"));
  CAPTURE(n0.status().ToString());
  REQUIRE(n0.ok());
  REQUIRE((*n0)->names() ==
          std::vector<std::string>{"127.0.0.1", "::1", "lead.cluster", "*.nodes.cluster"});
  REQUIRE((*n0)->CheckOwn().ok());
  for (const char* name :
       {"", "127.0.0.1", "::1", "lead.cluster", "LEAD.cluster", "n7.nodes.cluster"}) {
    CAPTURE(name);
    CHECK((*n0)->CheckPeer((*n0)->cert_pem(), "", TlsPeer::kServer, name).ok());
  }
  // The subject is no name.
  for (const char* name :
       {"127.0.0.2", "n0", "cluster", "a.b.nodes.cluster", "lead.cluster.evil"}) {
    CAPTURE(name);
    const absl::Status refused = (*n0)->CheckPeer((*n0)->cert_pem(), "", TlsPeer::kServer, name);
    CHECK(refused.code() == absl::StatusCode::kUnauthenticated);
    CHECK(absl::StrContains(refused.message(), absl::StrCat("is not for ", name)));
  }
}

TEST_CASE("A peer is refused with its certificate and what is wrong with it", "[rpc][tls]") {
  const Authority ours("our CA");
  const Authority other("other CA");
  const Authority namesake("our CA");
  ours.Issue("n0", "IP:127.0.0.1");
  ours.Issue("late", "IP:127.0.0.1", Authority::Valid::kExpired);
  other.Issue("stranger", "IP:127.0.0.1");
  namesake.Issue("forged", "IP:127.0.0.1");
  const auto n0 = *TlsIdentity::Load(FilesOf(ours, "n0"));
  const auto says = [&n0](const std::string& leaf) {
    const absl::Status refused = n0->CheckPeer(test::ReadWholeFile(leaf), "", TlsPeer::kClient, "");
    CHECK(refused.code() == absl::StatusCode::kUnauthenticated);
    return std::string(refused.message());
  };
  REQUIRE(absl::StrContains(says(ours.cert("late")), "CN=late (127.0.0.1), issued by CN=our CA"));
  REQUIRE(absl::StrContains(says(ours.cert("late")), "certificate has expired"));
  REQUIRE(absl::StrContains(says(other.cert("stranger")), "issued by CN=other CA"));
  REQUIRE(absl::StrContains(says(other.cert("stranger")), "unable to get local issuer"));
  REQUIRE(absl::StrContains(says(namesake.cert("forged")), "CN=forged (127.0.0.1)"));
  REQUIRE(absl::StrContains(says(ours.key("n0")), "has no certificate in PEM"));
  // Nor can a stranger write lines of the log.
  other.Issue("liar", "DNS:x\\nforged");
  REQUIRE(absl::StrContains(says(other.cert("liar")), R"((x\nforged), issued by)"));
  // A peer cannot bring its own CA.
  const absl::Status brought = n0->CheckPeer(test::ReadWholeFile(other.cert("stranger")),
                                             test::ReadWholeFile(other.ca()), TlsPeer::kClient, "");
  REQUIRE(brought.code() == absl::StatusCode::kUnauthenticated);
  // One of ours that is out of date is loaded: its peers refuse it, and so does CheckOwn.
  const auto late = TlsIdentity::Load(FilesOf(ours, "late"));
  REQUIRE(late.ok());
  REQUIRE(absl::StrContains((*late)->CheckOwn().message(), "certificate has expired"));
}

TEST_CASE("A certificate made for clients only is no server's", "[rpc][tls]") {
  const Authority authority;
  authority.Issue("n0", "IP:127.0.0.1");
  authority.Issue("client", "IP:127.0.0.1\nextendedKeyUsage=clientAuth");
  const auto n0 = *TlsIdentity::Load(FilesOf(authority, "n0"));
  const std::string client = test::ReadWholeFile(authority.cert("client"));
  REQUIRE(n0->CheckPeer(client, "", TlsPeer::kClient, "").ok());
  const absl::Status refused = n0->CheckPeer(client, "", TlsPeer::kServer, "127.0.0.1");
  REQUIRE(refused.code() == absl::StatusCode::kUnauthenticated);
}

TEST_CASE("A certificate between ours and the CA goes with it", "[rpc][tls]") {
  const Authority root("root");
  root.Issue("n0", "IP:127.0.0.1");
  root.Issue("middle", "IP:127.0.0.1");
  const test::TempFolder folder;
  // "middle" is no CA: what it signs is refused although the chain is there.
  test::Openssl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                 "-nodes", "-days", "2", "-subj", "/CN=below", "-CA", root.cert("middle"), "-CAkey",
                 root.key("middle"), "-keyout", folder.path() + "/k", "-out",
                 folder.path() + "/c"});
  const auto n0 = *TlsIdentity::Load(FilesOf(root, "n0"));
  const absl::Status refused =
      n0->CheckPeer(test::ReadWholeFile(folder.path() + "/c"),
                    test::ReadWholeFile(root.cert("middle")), TlsPeer::kClient, "");
  REQUIRE(refused.code() == absl::StatusCode::kUnauthenticated);
  REQUIRE(absl::StrContains(refused.message(), "above it, CN=middle"));
}

TEST_CASE("Files that cannot be an identity are refused by key and path", "[rpc][tls]") {
  const Authority authority;
  authority.Issue("n0", "IP:127.0.0.1");
  authority.Issue("n1", "IP:127.0.0.1");
  const TlsFiles good = FilesOf(authority, "n0");
  const test::TempFolder folder;
  const std::string none = folder.path() + "/none";
  const std::string text = folder.path() + "/text";
  REQUIRE(test::WriteWholeFile(text, "-----BEGIN CERTIFICATE-----\nAAAA\n"));
  REQUIRE(::chmod(text.c_str(), 0600) == 0);
  REQUIRE(LoadingSays(good).empty());
  REQUIRE(LoadingSays({none, good.key, none}) ==
          absl::StrCat("tls.cert: ", none, " cannot be read: No such file or directory\ntls.ca: ",
                       none, " cannot be read: No such file or directory"));
  REQUIRE(absl::StrContains(LoadingSays({folder.path(), good.key, good.ca}),
                            absl::StrCat("tls.cert: ", folder.path(), " is no regular file")));
  REQUIRE(LoadingSays({text, text, text}) ==
          absl::StrCat("tls.cert: ", text, " has no certificate in PEM\ntls.key: ", text,
                       " has no private key in PEM\ntls.ca: ", text, " has no certificate in PEM"));
  REQUIRE(absl::StrContains(LoadingSays({good.cert, authority.key("n1"), good.ca}),
                            "n1.key is not the key of the certificate CN=n0"));
}

TEST_CASE("A key that everyone may read, or that wants a passphrase, is refused", "[rpc][tls]") {
  const Authority authority;
  authority.Issue("n0", "IP:127.0.0.1");
  const TlsFiles files = FilesOf(authority, "n0");
  for (const mode_t mode : {0644U, 0660U | 0004U, 0600U | 0002U}) {
    REQUIRE(::chmod(files.key.c_str(), mode) == 0);
    REQUIRE(absl::StrContains(LoadingSays(files), "everyone may use it, want 0640 or less"));
  }
  REQUIRE(::chmod(files.key.c_str(), 0640) == 0);
  REQUIRE(LoadingSays(files).empty());
  const std::string locked = files.key + ".locked";
  test::Openssl({"pkey", "-in", files.key, "-aes256", "-passout", "pass:x", "-out", locked});
  REQUIRE(::chmod(locked.c_str(), 0600) == 0);
  REQUIRE(absl::StrContains(LoadingSays({files.cert, locked, files.ca}),
                            "has a passphrase, want a key without one"));
}

TEST_CASE("A FIFO or an endless file in place of a key does not hang the start", "[rpc][tls]") {
  const Authority authority;
  authority.Issue("n0", "IP:127.0.0.1");
  const TlsFiles files = FilesOf(authority, "n0");
  const std::string fifo = files.key + ".fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  REQUIRE(absl::StrContains(LoadingSays({files.cert, fifo, files.ca}), "is no regular file"));
  REQUIRE(absl::StrContains(LoadingSays({"/dev/zero", files.key, files.ca}), "is no regular file"));
  REQUIRE(test::WriteWholeFile(fifo + "2", std::string((1 << 20) + 1, 'x')));
  REQUIRE(absl::StrContains(LoadingSays({fifo + "2", files.key, files.ca}),
                            "has more than 1048576 bytes"));
}

}  // namespace
}  // namespace wb
