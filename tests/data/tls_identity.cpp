#include "tls_identity.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

namespace towers::test {
namespace {

void add_extension(X509* certificate, int kind, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// What `write` has to say to a BIO.
template <class Write>
std::string pem_of(const Write& write) {
  BIO* bio = BIO_new(BIO_s_mem());
  write(bio);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  const std::string pem(text, static_cast<std::size_t>(size));
  BIO_free(bio);
  return pem;
}

}  // namespace

TlsIdentity::TlsIdentity(long from_seconds, long to_seconds)
    : context_(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), from_seconds);
  X509_gmtime_adj(X509_getm_notAfter(certificate), to_seconds);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("loopback"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_set_pubkey(certificate, key);
  add_extension(certificate, NID_subject_alt_name, "IP:127.0.0.1");
  add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(certificate, key, EVP_sha256());
  SSL_CTX_use_certificate(context_.get(), certificate);
  SSL_CTX_use_PrivateKey(context_.get(), key);
  pem_ = pem_of([certificate](BIO* bio) { PEM_write_bio_X509(bio, certificate); });
  X509_free(certificate);
  EVP_PKEY_free(key);
}

std::string TlsIdentity::private_key() const {
  return pem_of([this](BIO* bio) {
    PEM_write_bio_PrivateKey(bio, SSL_CTX_get0_privatekey(context()), nullptr, nullptr, 0, nullptr,
                             nullptr);
  });
}

Connection::Connection(int socket, const TlsIdentity* identity)
    : socket_(socket), encrypted_(identity != nullptr) {
  if (!encrypted_) return;
  tls_.reset(SSL_new(identity->context()));
  SSL_set_fd(tls_.get(), socket);
  if (SSL_accept(tls_.get()) != 1) tls_.reset();
}

Connection::~Connection() {
  if (tls_) SSL_shutdown(tls_.get());
}

long Connection::read(char* bytes, std::size_t size) {
  if (!encrypted_) return ::recv(socket_, bytes, size, 0);
  return tls_ ? SSL_read(tls_.get(), bytes, static_cast<int>(size)) : -1;
}

void Connection::write(const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const char* start = bytes.data() + done;
    const std::size_t size = bytes.size() - done;
    const long sent = !encrypted_ ? ::send(socket_, start, size, MSG_NOSIGNAL)
                      : tls_      ? SSL_write(tls_.get(), start, static_cast<int>(size))
                                  : -1;
    if (sent <= 0) return;
    done += static_cast<std::size_t>(sent);
  }
}

}  // namespace towers::test
