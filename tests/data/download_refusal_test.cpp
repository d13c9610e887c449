// Downloads that must not end well: each ends in a bounded time, names the cause and the ways out,
// and leaves nothing under the final name.

#include <catch2/catch.hpp>

#include "download_fixture.h"
#include "tls_identity.h"

namespace towers::test {
namespace {

using Catch::Contains;

struct Refusal : DownloadFixture {
  Refusal() { options.attempts = 3; }

  // The message of a run that must fail.
  std::string failure() {
    const std::string message = run();
    CHECK(message != "");
    CHECK(message.find('\n') == std::string::npos);
    CHECK_FALSE(std::filesystem::exists(archive));
    CHECK_FALSE(std::filesystem::exists(data_dir / set.spec.folder));
    for (const char* way : {"--data_url", "--data_dir", "--dataset=synthetic"})
      CHECK_THAT(message, Contains(way));
    CHECK_THAT(message, Contains(archive.string()));
    return message;
  }
};

}  // namespace

TEST_CASE_METHOD(Refusal, "A host that is down is named after the last attempt") {
  set.spec.url = options.url = "http://127.0.0.1:" + std::to_string(closed_port()) + "/a.tar.gz";
  CHECK_THAT(failure(), Contains("cannot download " + options.url) &&
                            Contains("Failed to connect") && Contains("(after 3 attempts)"));
  CHECK(listing() == "");
}

TEST_CASE_METHOD(Refusal, "A host without a name is named") {
  set.spec.url = options.url = "http://no-such-host.invalid/a.tar.gz";
  options.attempts = 1;
  CHECK_THAT(failure(), Contains("Could not resolve host: no-such-host.invalid"));
}

TEST_CASE_METHOD(Refusal,
                 "A server that cuts at once, every time, is left after the last attempt") {
  serve([&](const Request& request, int) {
    Reply reply = serve_file(request, set.archive);
    reply.send = 10;
    return reply;
  });
  CHECK_THAT(failure(),
             Contains("(after 3 attempts)") && Contains("30 of ") && Contains("are kept"));
  CHECK(server->requests().size() == 3);
  CHECK(read_file(part) == set.archive.substr(0, 30));
}

TEST_CASE_METHOD(Refusal,
                 "A cut that no later run can go on from leaves nothing, and promises nothing") {
  serve([&](const Request&, int) {
    Reply reply;  // no ETag, no Last-Modified
    reply.body = set.archive;
    reply.send = 1000;
    return reply;
  });
  options.url += "?mirror";  // no digest either
  CHECK_THAT(failure(), !Contains("are kept"));
  CHECK(listing() == "");
}

TEST_CASE_METHOD(Refusal, "A stalled server is left") {
  options.attempts = 2;
  SECTION("in the middle of the body") {
    serve([&](const Request& request, int) {
      Reply reply = serve_file(request, set.archive);
      reply.send = 1000;
      reply.stall = true;
      return reply;
    });
    CHECK_THAT(failure(), Contains("Operation too slow") && Contains("2000 of "));
  }
  SECTION("before the first byte") {
    options.attempts = 1;
    serve([&](const Request&, int) {
      Reply reply;
      reply.mute = true;
      return reply;
    });
    CHECK_THAT(failure(), Contains("Operation too slow"));
  }
  CHECK(server->requests().size() == static_cast<std::size_t>(options.attempts));
}

TEST_CASE_METHOD(Refusal, "Statuses that will not change are not tried again") {
  for (const int status : {401, 403, 404, 410}) {
    serve([&](const Request&, int) { return Reply{status, {}, "<html>no</html>"}; });
    CHECK_THAT(failure(), Contains("the server answers " + std::to_string(status)));
    CHECK(server->requests().size() == 1);
    CHECK(listing() == "");
  }
}

TEST_CASE_METHOD(Refusal, "Statuses that never change are given up") {
  serve([&](const Request&, int) { return Reply{503, {}, "busy"}; });
  CHECK_THAT(failure(), Contains("503 Service Unavailable (after 3 attempts)"));
  CHECK(server->requests().size() == 3);
}

TEST_CASE_METHOD(Refusal, "A web page instead of the archive is named, and fetched once") {
  serve([&](const Request&, int) { return Reply{200, {}, "<!doctype html><p>Log in"}; });
  CHECK_THAT(failure(), Contains("a web page (HTML) instead of a gzip archive"));
  CHECK(server->requests().size() == 1);
  serve([&](const Request&, int) {
    return Reply{200, {{"Content-Type", "text/html; charset=utf-8"}}, "Please log in"};
  });
  CHECK_THAT(failure(), Contains("a web page (HTML) instead of a gzip archive"));
  CHECK(listing() == "");
}

TEST_CASE_METHOD(Refusal, "What is no gzip archive is described") {
  serve([&](const Request&, int) { return Reply{200, {}, "PK\3\4..."}; });
  CHECK_THAT(failure(), Contains("unknown content (first bytes 50 4b 03 04)"));
}

TEST_CASE_METHOD(Refusal, "An empty answer is no archive") {
  serve([&](const Request&, int) { return Reply{200, {}, ""}; });
  CHECK_THAT(failure(), Contains("the answer is empty"));
  CHECK(listing() == "");
}

TEST_CASE_METHOD(Refusal, "The wrong file is not put in place") {
  std::string other = set.archive;
  other.back() = static_cast<char>(other.back() ^ 1);
  serve([&](const Request& request, int) { return serve_file(request, other); });
  CHECK_THAT(failure(), Contains("is not the archive") && Contains("sha256 " + sha256_of(other)) &&
                            Contains("instead of " + set.spec.sha256) && Contains(set.spec.md5));
  CHECK(server->requests().size() == 1);
  CHECK(listing() == "");
}

TEST_CASE_METHOD(Refusal, "Without a digest the archive itself is checked") {
  std::string other = set.archive;
  other[other.size() / 2] = static_cast<char>(other[other.size() / 2] ^ 1);
  serve([&](const Request& request, int) { return serve_file(request, other); });
  options.url += "?mirror";
  CHECK_THAT(failure(), Contains("is not the archive") && Contains("damaged"));
  CHECK_THAT(messages(), Contains("warning: no --data_sha256"));
  CHECK(listing() == "");
}

TEST_CASE_METHOD(Refusal, "A length other than the official archive's is refused at once") {
  std::string other = set.archive;
  SECTION("shorter") {
    other.resize(other.size() - 1);
  }
  SECTION("longer") {
    other += "x";
  }
  serve([&](const Request& request, int) { return serve_file(request, other); });
  CHECK_THAT(failure(), Contains(std::to_string(other.size()) + " bytes instead of the archive's " +
                                 std::to_string(set.archive.size())));
  CHECK(server->requests().size() == 1);
  CHECK(listing() == "");
}

TEST_CASE_METHOD(Refusal, "A lie about the length is found out") {
  SECTION("more said than sent") {
    set.spec.bytes += 100;
    serve([&](const Request&, int) {
      Reply reply;
      reply.body = set.archive;
      reply.length = set.spec.bytes;
      return reply;
    });
    CHECK_THAT(failure(), Contains("(after 3 attempts)"));
  }
  SECTION("less said than sent") {
    serve([&](const Request&, int) {
      Reply reply;
      reply.body = set.archive;
      reply.length = set.archive.size() - 100;
      return reply;
    });
    options.url += "?mirror";
    CHECK_THAT(failure(), Contains("truncated"));
  }
}

TEST_CASE_METHOD(Refusal, "A server that never ends is stopped at the limit") {
  serve([&](const Request&, int) {
    Reply reply;
    reply.body = set.archive + std::string(1 << 20, 'x');
    reply.say_length = false;
    return reply;
  });
  SECTION("of the official size") {
    CHECK_THAT(failure(), Contains("sends more than " + std::to_string(set.archive.size())));
  }
  SECTION("of any archive") {
    options.url += "?mirror";
    options.limits.bytes = set.archive.size() + 1000;
    CHECK_THAT(failure(), Contains("sends more than " + std::to_string(options.limits.bytes)));
  }
  CHECK(server->requests().size() == 1);
}

TEST_CASE_METHOD(Refusal, "An archive that says it is larger than any is refused") {
  options.limits.bytes = 1000;
  serve_well();
  options.url += "?mirror";
  CHECK_THAT(failure(), Contains("more than 1000 are allowed"));
}

TEST_CASE_METHOD(Refusal, "Redirects end, and lead nowhere but to http and https") {
  std::string target;
  serve([&](const Request&, int) { return Reply{302, {{"Location", target}}, ""}; });
  SECTION("a loop") {
    target = "/again";
    CHECK_THAT(failure(), Contains("more than 5 redirects"));
    CHECK(server->requests().size() == 6);
  }
  SECTION("a file of this machine") {
    target = "file:///etc/passwd";
    CHECK_THAT(failure(), Contains("refused") && Contains("redirects to file:///etc/passwd"));
  }
  SECTION("another protocol") {
    target = "ftp://127.0.0.1/a.tar.gz";
    CHECK_THAT(failure(), Contains("redirects to ftp://127.0.0.1/a.tar.gz"));
  }
  SECTION("nowhere") {
    CHECK_THAT(failure(), Contains("the server answers 302"));
  }
}

TEST_CASE_METHOD(Refusal,
                 "Other protocols than http, https and file are refused before any request") {
  for (const char* url : {"ftp://127.0.0.1/a.tar.gz", "a.tar.gz", "/tmp/a.tar.gz", ""}) {
    CAPTURE(url);
    options.url = url;
    CHECK_THROWS_AS(data::ensure_archive(set.spec, data_dir, options), UsageError);
    CHECK_FALSE(std::filesystem::exists(data_dir));
  }
}

TEST_CASE_METHOD(Refusal, "A file address that leads to no archive is named, and read once") {
  options.url = "file:///no/such/archive.tar.gz";
  CHECK_THAT(failure(), Contains("file:///no/such/archive.tar.gz"));
  const std::filesystem::path other = folder.path() / "other";
  options.url = "file://" + other.string();
  write_file(other, "");
  CHECK_THAT(failure(), Contains("the answer is empty"));
  write_file(other, "text");
  CHECK_THAT(failure(), Contains("instead of a gzip archive; ways out"));
  CHECK_THAT(messages(), !Contains("retrying"));
}

TEST_CASE_METHOD(Refusal, "A malformed digest is the command line's fault") {
  serve_well();
  options.sha256 = "abc";
  CHECK_THROWS_AS(data::ensure_archive(set.spec, data_dir, options), UsageError);
}

TEST_CASE_METHOD(Refusal, "A password in the address reaches no message and no file") {
  serve([&](const Request& request, int) {
    Reply reply = serve_file(request, set.archive);
    reply.send = 1000;
    return reply;
  });
  options.attempts = 1;
  options.url = "http://user:secret@127.0.0.1:" + std::to_string(server->port()) + "/a";
  CHECK_THAT(failure(), !Contains("secret"));
  CHECK_THAT(messages(), Contains("warning: ") && !Contains("secret"));
  CHECK_THAT(read_file(part.string() + ".info"), Contains("/a") && !Contains("secret"));
}

}  // namespace towers::test
