// The way to the server: TLS and proxies.

#include <catch2/catch.hpp>

#include "download_fixture.h"
#include "tls_identity.h"

namespace towers::test {
namespace {

using Catch::Contains;

struct Way : DownloadFixture {
  Way() { options.attempts = 3; }

  HttpServer::Handler well() {
    return [this](const Request& request, int) { return serve_file(request, set.archive); };
  }
  std::string trusted(const TlsIdentity& identity) {
    write_file(folder.path() / "trusted.pem", identity.certificate());
    return (folder.path() / "trusted.pem").string();
  }
};

}  // namespace

TEST_CASE_METHOD(Way, "https is read from a server with a valid certificate alone") {
  const auto valid = std::make_shared<TlsIdentity>();
  const auto expired = std::make_shared<TlsIdentity>(-7200, -3600);
  SECTION("trusted") {
    serve(well(), valid);
    const Environment trust("SSL_CERT_FILE", trusted(*valid));
    REQUIRE(run() == "");
    CHECK(complete());
  }
  SECTION("not trusted") {
    serve(well(), valid);
    CHECK_THAT(run(), Contains("certificate") && Contains("not trusted"));
    CHECK(server->requests().empty());
  }
  SECTION("expired") {
    serve(well(), expired);
    const Environment trust("SSL_CERT_FILE", trusted(*expired));
    CHECK_THAT(run(), Contains("certificate has expired"));
    CHECK(server->requests().empty());
  }
  SECTION("of another host") {
    serve(well(), valid);
    const Environment trust("SSL_CERT_FILE", trusted(*valid));
    set.spec.url = options.url =
        "https://localhost:" + std::to_string(server->port()) + "/a.tar.gz";
    CHECK_THAT(run(), Contains("localhost"));
    CHECK(server->requests().empty());
  }
  CHECK_THAT(messages(), !Contains("retrying"));
}

TEST_CASE_METHOD(Way, "A redirect leads from http to https, but not from https to http") {
  const auto identity = std::make_shared<TlsIdentity>();
  const Environment trust("SSL_CERT_FILE", trusted(*identity));
  HttpServer plain([&](const Request& request, int) {
    if (request.target == "/archive") return serve_file(request, set.archive);
    return Reply{301, {{"Location", server->url("/archive")}}, ""};
  });
  serve(
      [&](const Request& request, int) {
        if (request.target == "/archive") return serve_file(request, set.archive);
        return Reply{301, {{"Location", plain.url("/archive")}}, ""};
      },
      identity);
  SECTION("up") {
    options.url = plain.url("/start");
    options.sha256 = set.spec.sha256;
    REQUIRE(run() == "");
    CHECK(complete());
  }
  SECTION("down") {
    CHECK_THAT(run(),
               Contains("redirects to " + plain.url("/archive") + ", which is not encrypted"));
    CHECK(plain.requests().empty());
  }
}

TEST_CASE_METHOD(Way, "http_proxy is honoured, and no_proxy") {
  HttpServer proxy([&](const Request& request, int) { return serve_file(request, set.archive); });
  const Environment through("http_proxy", proxy.url(""));
  SECTION("a proxy") {
    set.spec.url = options.url = "http://cifar.invalid/archive.tar.gz";
    REQUIRE(run() == "");
    CHECK(complete());
    REQUIRE(proxy.requests().size() == 1);
    CHECK(proxy.requests()[0].target == "http://cifar.invalid/archive.tar.gz");
  }
  SECTION("none for this host") {
    const Environment none("no_proxy", "127.0.0.1");
    serve_well();
    REQUIRE(run() == "");
    CHECK(proxy.requests().empty());
    CHECK(server->requests()[0].target == "/small-set.tar.gz");
  }
}

TEST_CASE_METHOD(Way, "https_proxy is asked for a tunnel") {
  int status = 403;
  HttpServer proxy([&](const Request&, int) { return Reply{status, {}, ""}; });
  const Environment through("https_proxy", proxy.url(""));
  set.spec.url = options.url = "https://cifar.invalid/archive.tar.gz";
  CHECK_THAT(run(), Contains("the proxy answers 403 Forbidden"));
  REQUIRE(proxy.requests().size() == 1);  // it will not change its mind
  CHECK(proxy.requests()[0].method == "CONNECT");
  CHECK(proxy.requests()[0].target == "cifar.invalid:443");
  status = 503;
  CHECK_THAT(run(), Contains("the proxy answers 503") && Contains("(after 3 attempts)"));
}

TEST_CASE_METHOD(Way, "A proxy address that is none is named by its variable, once") {
  serve_well();
  for (const char* proxy : {"ftp://user:secret@127.0.0.1:1", "http://[::1"}) {
    const Environment through("http_proxy", proxy);
    const std::string error = run();
    CHECK_THAT(error, Contains("http_proxy") && !Contains("attempts") && !Contains("secret"));
    CHECK_THAT(messages(), !Contains("retrying"));
  }
}

TEST_CASE_METHOD(Way, "A proxy that asks for a login says how to give one") {
  HttpServer proxy([](const Request&, int) { return Reply{407, {}, ""}; });
  const Environment plain("http_proxy", proxy.url(""));
  const Environment encrypted("https_proxy", proxy.url(""));
  for (const char* scheme : {"http", "https"}) {
    set.spec.url = options.url = std::string(scheme) + "://cifar.invalid/archive.tar.gz";
    CHECK_THAT(run(), Contains("407") && Contains("http_proxy"));
  }
  CHECK(proxy.requests().size() == 2);
}

}  // namespace towers::test
