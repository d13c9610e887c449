// Strangers are refused, and leave those who belong to the cluster alone.
#include <catch2/catch.hpp>

#include <signal.h>

#include "tests/cluster/processes.h"
#include "tests/data/tls_identity.h"

using namespace towers::test;
using Catch::Contains;

namespace {

const LinearCluster::Args few_steps{"--max_steps=100", "--cluster_timeout=2"};

struct Stranger {
  LinearCluster::Args flags;
  std::string told;
};

// One worker after another: none of the strangers gets through, the last one trains to the end.
void check_strangers(const LinearCluster::Args& own, const std::vector<Stranger>& strangers,
                     const std::string& logged) {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 1, folder.path(), few_steps);
  LinearCluster::Args keep = own;
  keep.push_back("--cluster_timeout=60");
  auto ps = cluster.start("ps", 0, keep);
  REQUIRE(ps->wait_for_output("is serving"));
  for (const Stranger& stranger : strangers) {
    const ProcessResult result = cluster.start("worker", 0, stranger.flags)->wait();
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.err, Contains(stranger.told));
  }
  const ProcessResult belongs = cluster.start("worker", 0, own)->wait();
  INFO(belongs.err);
  CHECK(belongs.exit_code == 0);
  const ProcessResult server = ps->wait();
  CHECK(server.exit_code == 0);
  CHECK_THAT(server.err, Contains(logged));
}

}  // namespace

TEST_CASE("without the token of --cluster_token_file a worker is refused and logged") {
  const TemporaryFolder folder;
  const auto with_token = [&](const std::string& name, const std::string& token) {
    write_file(folder.path() / name, token);
    return LinearCluster::Args{"--cluster_token_file=" + (folder.path() / name).string()};
  };
  const std::string told = "wants another token; give all tasks the same --cluster_token_file";
  check_strangers(with_token("own", "s3cret\n"),
                  {{{}, told}, {with_token("other", "s3creT\n"), told}}, "which lacks the token");
}

TEST_CASE("a worker with a token is refused by a server without one") {
  const TemporaryFolder folder;
  write_file(folder.path() / "token", "s3cret\n");
  check_strangers({},
                  {{{"--cluster_token_file=" + (folder.path() / "token").string()},
                    "was started without a token; give all tasks the same"}},
                  "which has a token, unlike this server");
}

TEST_CASE("with TLS a worker without a certificate of the authority is refused and logged") {
  const TemporaryFolder folder;
  const auto with_identity = [&](const std::string& name) {
    const TlsIdentity identity;
    const std::filesystem::path cert = folder.path() / (name + ".pem");
    const std::filesystem::path key = folder.path() / (name + ".key");
    write_file(cert, identity.certificate());
    write_file(key, identity.private_key());
    return LinearCluster::Args{"--tls_cert=" + cert.string(), "--tls_key=" + key.string(),
                               "--tls_ca=" + cert.string()};
  };
  LinearCluster::Args forged = with_identity("stranger"), trusting = forged;
  const LinearCluster::Args own = with_identity("own");
  forged[2] = own[2];
  // It trusts the servers, and they do not trust it.
  const std::filesystem::path both = folder.path() / "both.pem";
  write_file(both,
             read_file(folder.path() / "own.pem") + read_file(folder.path() / "stranger.pem"));
  trusting[2] = "--tls_ca=" + both.string();
  check_strangers(own,
                  {{{}, "closes the connection; its log says why"},
                   {with_identity("other"), "shows a certificate that --tls_ca does not accept"},
                   {forged, "is not accepted by --tls_ca="},
                   {trusting, "closes the connection; its log says why"}},
                  "refused a peer: Handshake failed");
}

TEST_CASE("a server without TLS is told from one that is missing") {
  const TemporaryFolder folder;
  const TlsIdentity identity;
  write_file(folder.path() / "cert", identity.certificate());
  write_file(folder.path() / "key", identity.private_key());
  const std::string file = (folder.path() / "cert").string();
  const LinearCluster cluster(1, 1, folder.path(), {"--cluster_timeout=60"});
  auto ps = cluster.start("ps", 0);
  REQUIRE(ps->wait_for_output("is serving"));
  const ProcessResult result =
      cluster
          .start("worker", 0,
                 {"--tls_cert=" + file, "--tls_key=" + (folder.path() / "key").string(),
                  "--tls_ca=" + file})
          ->wait();
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Contains(cluster.ps(0) + " speaks without TLS"));
}

TEST_CASE("files of secrets that are of no use are errors that name the flag") {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 1, folder.path(), {});
  const auto refused = [&](const LinearCluster::Args& flags, int exit_code,
                           const std::string& message) {
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

  const TlsIdentity own, other, late(-7200, -3600);
  const auto path = [&](const std::string& name, const std::string& text) {
    write_file(folder.path() / name, text);
    return (folder.path() / name).string();
  };
  const std::string cert = path("cert", own.certificate()), key = path("key", own.private_key());
  const std::string other_key = path("other.key", other.private_key());
  const std::string late_cert = path("late", late.certificate());
  const std::string late_key = path("late.key", late.private_key());
  const auto tls = [](const std::string& c, const std::string& k, const std::string& a) {
    return LinearCluster::Args{"--tls_cert=" + c, "--tls_key=" + k, "--tls_ca=" + a};
  };
  refused(tls(file, key, cert), 1, "--tls_cert: ");
  refused(tls(key, key, cert), 1, "holds no certificate in PEM form");
  refused(tls(cert, file, cert), 1, "holds no private key in PEM form");
  refused(tls(cert, key, file), 1, "--tls_ca: ");
  refused(tls(cert, other_key, cert), 1, "is not the key of --tls_cert=" + cert);
  refused(tls(cert, key, late_cert), 1, "is not accepted by --tls_ca=" + late_cert);
  refused(tls(late_cert, late_key, late_cert), 1, "certificate has expired");
}
