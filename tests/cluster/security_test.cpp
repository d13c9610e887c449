// Strangers are refused, and leave those who belong to the cluster alone.
#include <catch2/catch.hpp>

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <signal.h>

#include "tests/cluster/processes.h"
#include "tests/data/tls_identity.h"

using namespace towers::test;
using Catch::Contains;

namespace {

const LinearCluster::Args quick{"--max_steps=100", "--cluster_timeout=2"};

// One worker after another: none of the strangers gets through, the last one trains to the end.
void check_strangers(const LinearCluster::Args& own,
                     const std::vector<LinearCluster::Args>& strangers, const std::string& told,
                     const std::string& logged) {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 1, folder.path(), quick);
  LinearCluster::Args keep = own;
  keep.push_back("--cluster_timeout=60");
  auto ps = cluster.start("ps", 0, keep);
  REQUIRE(ps->wait_for_output("is serving"));
  for (const LinearCluster::Args& flags : strangers) {
    const ProcessResult result = cluster.start("worker", 0, flags)->wait();
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.err, Contains(told));
  }
  const ProcessResult belongs = cluster.start("worker", 0, own)->wait();
  INFO(belongs.err);
  CHECK(belongs.exit_code == 0);
  const ProcessResult server = ps->wait();
  CHECK(server.exit_code == 0);
  CHECK_THAT(server.err, Contains(logged));
}

std::string private_key(const TlsIdentity& identity) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, SSL_CTX_get0_privatekey(identity.context()), nullptr, nullptr, 0,
                           nullptr, nullptr);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  const std::string pem(text, static_cast<std::size_t>(size));
  BIO_free(bio);
  return pem;
}

}  // namespace

TEST_CASE("without the token of --cluster_token_file a worker is refused and logged") {
  const TemporaryFolder folder;
  const auto with_token = [&](const std::string& name, const std::string& token) {
    write_file(folder.path() / name, token);
    return LinearCluster::Args{"--cluster_token_file=" + (folder.path() / name).string()};
  };
  check_strangers(with_token("own", "s3cret\n"), {{}, with_token("other", "s3creT\n")},
                  "wants another token; give all tasks the same --cluster_token_file",
                  "which lacks the token");
}

TEST_CASE("with TLS a worker without a certificate of the authority is refused and logged") {
  const TemporaryFolder folder;
  const auto with_identity = [&](const std::string& name) {
    const TlsIdentity identity;
    const std::filesystem::path cert = folder.path() / (name + ".pem");
    const std::filesystem::path key = folder.path() / (name + ".key");
    write_file(cert, identity.certificate());
    write_file(key, private_key(identity));
    return LinearCluster::Args{"--tls_cert=" + cert.string(), "--tls_key=" + key.string(),
                               "--tls_ca=" + cert.string()};
  };
  LinearCluster::Args forged = with_identity("stranger");
  const LinearCluster::Args own = with_identity("own");
  forged[2] = own[2];  // it trusts the servers, and they do not trust it
  check_strangers(own, {{}, with_identity("other"), forged}, "gave up after 2 s: ps 0 ",
                  "refused a peer: Handshake failed");
}

TEST_CASE("files of secrets that are of no use are errors that name the flag") {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 1, folder.path(), {});
  const auto refused = [&](const LinearCluster::Args& flags, int exit_code, const char* message) {
    for (const char* job : {"ps", "worker"}) {
      const ProcessResult result = cluster.start(job, 0, flags)->wait();
      CHECK(result.exit_code == exit_code);
      CHECK_THAT(result.err, Contains(message));
    }
  };
  const std::string file = (folder.path() / "file").string();
  refused({"--cluster_token_file=" + file}, 1, "--cluster_token_file: cannot read ");
  write_file(file, "two words\n");
  refused({"--cluster_token_file=" + file}, 1, "is not one line of printable characters");
  refused({"--tls_cert=" + file, "--tls_ca=" + file}, 2, "give all three or none");
}
