// Downloads that end well: at once, after a cut, after errors.

#include <catch2/catch.hpp>

#include <thread>

#include "download_fixture.h"

namespace towers::test {

using Catch::Contains;

TEST_CASE_METHOD(DownloadFixture, "A download ends with the set, the archive, and nothing else") {
  serve_well();
  std::vector<data::Progress> progress;
  options.progress = [&](const data::Progress& now) { progress.push_back(now); };
  REQUIRE(run() == "");
  CHECK(complete());
  CHECK(read_file(archive) == set.archive);
  CHECK(listing() == "cifar-10-batches-bin small-set.tar.gz");
  CHECK(messages() == "Successfully downloaded small-set.tar.gz " +
                          std::to_string(set.archive.size()) + " bytes.\n");
  REQUIRE(server->requests().size() == 1);
  CHECK(server->requests()[0].header("range") == "");
  REQUIRE_FALSE(progress.empty());
  CHECK(progress.back().file == "small-set.tar.gz");
  CHECK(progress.back().done == set.archive.size());
  CHECK(progress.back().total == set.archive.size());

  REQUIRE(run() == "");  // once more: there is nothing to do
  CHECK(server->requests().size() == 1);
}

TEST_CASE_METHOD(DownloadFixture, "A transfer that is cut goes on by range from where it was cut") {
  const std::size_t cut = set.archive.size() * 3 / 10;
  serve([&](const Request& request, int number) {
    Reply reply = serve_file(request, set.archive);
    if (number == 0) reply.send = cut;
    if (number == 1) CHECK_FALSE(std::filesystem::exists(archive));
    return reply;
  });
  REQUIRE(run() == "");
  CHECK(complete());
  const std::vector<Request> requests = server->requests();
  REQUIRE(requests.size() == 2);
  CHECK(requests[1].header("range") == "bytes=" + std::to_string(cut) + "-");
  CHECK(requests[1].header("if-range") == "\"v1\"");
  CHECK_THAT(messages(), Contains("retrying in 0.01 s (attempt 2 of 5): "));
}

TEST_CASE_METHOD(DownloadFixture,
                 "A cut without another try leaves a part, which the next run completes") {
  const std::size_t cut = set.archive.size() * 3 / 10;
  serve([&](const Request& request, int number) {
    Reply reply = serve_file(request, set.archive);
    if (number == 0) reply.send = cut;
    return reply;
  });
  options.attempts = 1;
  CHECK_THAT(run(), Contains(options.url) && Contains(std::to_string(cut) + " of ") &&
                        Contains(part.string()) && Contains("--dataset=synthetic"));
  CHECK(read_file(part) == set.archive.substr(0, cut));
  CHECK_FALSE(std::filesystem::exists(archive));
  CHECK_FALSE(std::filesystem::exists(data_dir / set.spec.folder));

  REQUIRE(run() == "");
  CHECK(complete());
  CHECK(server->requests()[1].header("range") == "bytes=" + std::to_string(cut) + "-");
  CHECK(server->requests()[1].header("if-range") == "\"v1\"");
  CHECK(listing() == "cifar-10-batches-bin small-set.tar.gz");
}

TEST_CASE_METHOD(DownloadFixture,
                 "A server that cuts every time but gets on is followed to the end") {
  serve([&](const Request& request, int) {
    Reply reply = serve_file(request, set.archive);
    reply.send = set.archive.size() / 4 + 1;
    return reply;
  });
  REQUIRE(run() == "");
  CHECK(complete());
  CHECK(server->requests().size() == 4);
}

TEST_CASE_METHOD(DownloadFixture, "A server that knows no ranges sends it all again") {
  const std::size_t cut = set.archive.size() / 2;
  serve([&](const Request&, int number) {
    Reply reply;
    reply.body = set.archive;
    if (number == 0) reply.send = cut;
    return reply;
  });
  REQUIRE(run() == "");
  CHECK(complete());
  REQUIRE(server->requests().size() == 2);
  CHECK(server->requests()[1].header("range") == "bytes=" + std::to_string(cut) + "-");
  CHECK_THAT(messages(), Contains("from its beginning"));
}

TEST_CASE_METHOD(DownloadFixture, "A file that changed on the server is not patched together") {
  // Another archive of the same length and name, so that the length gives nothing away.
  const std::string other = noise(set.archive.size(), 99);
  const std::size_t cut = set.archive.size() / 2;
  SECTION("the server honours If-Range") {
    serve([&](const Request& request, int number) {
      Reply reply = number == 0 ? serve_file(request, "\x1f\x8b" + other.substr(2), "\"old\"")
                                : serve_file(request, set.archive, "\"new\"");
      if (number == 0) reply.send = cut;
      return reply;
    });
  }
  SECTION("the server ignores If-Range, but its ETag differs") {
    serve([&](const Request& asked, int number) {
      Request request = asked;
      request.headers.erase("if-range");
      Reply reply = number == 0 ? serve_file(request, "\x1f\x8b" + other.substr(2), "\"old\"")
                                : serve_file(request, set.archive, "\"new\"");
      if (number == 0) reply.send = cut;
      return reply;
    });
  }
  SECTION("the server answers with another range than was asked for") {
    serve([&](const Request& asked, int number) {
      Request request = asked;
      if (number == 1) request.headers["range"] = "bytes=" + std::to_string(cut + 1) + "-";
      Reply reply = serve_file(request, set.archive);
      if (number == 0) reply.send = cut;
      return reply;
    });
  }
  REQUIRE(run() == "");
  CHECK(complete());
}

TEST_CASE_METHOD(DownloadFixture,
                 "A part of a file that changed between two runs is found out by its digest") {
  serve_well();
  std::filesystem::create_directories(data_dir);
  write_file(part, "\x1f\x8b" + noise(1000, 5));  // no note: nothing to ask the server about
  REQUIRE(run() == "");
  CHECK(complete());
  CHECK_THAT(messages(), Contains("has sha256") && Contains("starting from the beginning"));
  const std::vector<Request> requests = server->requests();
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].header("range") == "bytes=1002-");
  CHECK(requests[1].header("range") == "");
}

TEST_CASE_METHOD(DownloadFixture, "A part that is complete already is put in place") {
  serve_well();
  std::filesystem::create_directories(data_dir);
  write_file(part, set.archive);
  SECTION("where the size is known, without the network") {
    REQUIRE(run() == "");
    CHECK(server->requests().empty());
  }
  SECTION("where it is not, by the server's 416") {
    options.url += "?mirror";
    options.sha256 = set.spec.sha256;
    set.spec.sha256 = "another";
    REQUIRE(run() == "");
    CHECK(server->requests().size() == 1);
  }
  CHECK(complete());
  CHECK(listing() == "cifar-10-batches-bin small-set.tar.gz");
}

TEST_CASE_METHOD(DownloadFixture, "A part that is longer than the server's file starts anew") {
  serve_well();
  options.url += "?mirror";
  options.sha256 = set.spec.sha256;
  set.spec.sha256 = "another";
  std::filesystem::create_directories(data_dir);
  write_file(part, set.archive + "and more");
  REQUIRE(run() == "");
  CHECK(complete());
}

TEST_CASE_METHOD(DownloadFixture,
                 "A web page that an earlier program left as the part is dropped") {
  serve_well();
  std::filesystem::create_directories(data_dir);
  write_file(part, "<html>not found</html>");
  REQUIRE(run() == "");
  CHECK(complete());
  CHECK(server->requests()[0].header("range") == "");
}

TEST_CASE_METHOD(DownloadFixture, "Errors that may pass are tried again, with growing back-off") {
  options.attempts = 4;
  serve([&](const Request& request, int number) {
    Reply reply = serve_file(request, set.archive);
    if (number == 0) reply.status = 503;
    if (number == 1) reply.status = 500;
    if (number == 2) reply.send = 0;
    return reply;
  });
  REQUIRE(run() == "");
  CHECK(complete());
  CHECK(server->requests().size() == 4);
  CHECK_THAT(messages(), Contains("retrying in 0.01 s (attempt 2 of 4): the server answers 503 "
                                  "Service Unavailable\n") &&
                             Contains("retrying in 0.02 s (attempt 3 of 4): the server answers 500 "
                                      "Internal Server Error\n") &&
                             Contains("retrying in 0.04 s (attempt 4 of 4): "));
}

TEST_CASE_METHOD(DownloadFixture, "A server's Retry-After is honoured within bounds") {
  options.limits.longest_backoff_seconds = 0.05;
  serve([&](const Request& request, int number) {
    Reply reply = serve_file(request, set.archive);
    if (number == 0) {
      reply.status = 429;
      reply.headers.push_back({"Retry-After", "3600"});
    }
    return reply;
  });
  REQUIRE(run() == "");
  CHECK_THAT(messages(), Contains("retrying in 0.05 s (attempt 2 of 5): the server answers 429"));
}

TEST_CASE_METHOD(DownloadFixture, "Redirects are followed, and the range with them") {
  const std::size_t cut = set.archive.size() / 2;
  serve([&](const Request& request, int number) {
    if (!request.target.starts_with("/real"))
      return Reply{302, {{"Location", "/real/file"}}, "<html>moved</html>"};
    Reply reply = serve_file(request, set.archive);
    if (number == 1) reply.send = cut;
    return reply;
  });
  REQUIRE(run() == "");
  CHECK(complete());
  const std::vector<Request> requests = server->requests();
  REQUIRE(requests.size() == 4);
  CHECK(requests[3].header("range") == "bytes=" + std::to_string(cut) + "-");
}

TEST_CASE_METHOD(DownloadFixture,
                 "A server that does not say the length is believed if the archive is whole") {
  serve([&](const Request&, int) {
    Reply reply;
    reply.body = set.archive;
    reply.say_length = false;
    return reply;
  });
  SECTION("with a digest") {}
  SECTION("without one") {
    options.url += "?mirror";
  }
  REQUIRE(run() == "");
  CHECK(complete());
}

TEST_CASE_METHOD(DownloadFixture, "Two at once share one download") {
  serve_well();
  std::string errors[2];
  std::thread first([&] { errors[0] = run(); });
  std::thread second([&] { errors[1] = run(); });
  first.join();
  second.join();
  CHECK(errors[0] == "");
  CHECK(errors[1] == "");
  CHECK(complete());
  CHECK(server->requests().size() == 1);
  CHECK(listing() == "cifar-10-batches-bin small-set.tar.gz");
}

TEST_CASE_METHOD(DownloadFixture, "The lock of a process that died stops nobody") {
  serve_well();
  std::filesystem::create_directories(data_dir);
  write_file(archive.string() + ".lock", "");
  REQUIRE(run() == "");
  CHECK(complete());
  CHECK(listing() == "cifar-10-batches-bin small-set.tar.gz");
}

TEST_CASE_METHOD(DownloadFixture, "An archive comes from a file address too, network or not") {
  const std::filesystem::path source = folder.path() / "copy of the archive.tar.gz";
  write_file(source, set.archive);
  options.url = "file://" + folder.path().string() + "/copy%20of%20the%20archive.tar.gz";
  options.sha256 = set.spec.sha256;
  options.allow_network = false;
  REQUIRE(run() == "");
  CHECK(complete());
  CHECK(read_file(source) == set.archive);
}

}  // namespace towers::test
