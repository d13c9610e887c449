#include "cluster/tls_files.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "core/error.h"

namespace towers::cluster {
namespace {

template <class T, void (*free_it)(T*)>
struct Free {
  void operator()(T* pointer) const { free_it(pointer); }
};
using Bio = std::unique_ptr<BIO, Free<BIO, BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Free<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, EVP_PKEY_free>>;
using Store = std::unique_ptr<X509_STORE, Free<X509_STORE, X509_STORE_free>>;
using Context = std::unique_ptr<X509_STORE_CTX, Free<X509_STORE_CTX, X509_STORE_CTX_free>>;

void free_stack(STACK_OF(X509) * stack) {
  sk_X509_pop_free(stack, X509_free);
}
using Certificates = std::unique_ptr<STACK_OF(X509), Free<STACK_OF(X509), free_stack>>;

// Nobody is asked for a passphrase.
int no_passphrase(char*, int, int, void*) {
  return 0;
}

Bio reader_of(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Certificates certificates_of(const std::string& flag, const std::string& file,
                             const std::string& text) {
  Certificates found(sk_X509_new_null());
  const Bio reader = reader_of(text);
  while (X509* certificate = PEM_read_bio_X509(reader.get(), nullptr, no_passphrase, nullptr))
    sk_X509_push(found.get(), certificate);
  ERR_clear_error();  // the end of the file is one
  if (sk_X509_num(found.get()) == 0)
    throw Error("--" + flag + ": " + file + " holds no certificate in PEM form");
  return found;
}

}  // namespace

void check_tls_files(const SecurityFiles& files, const Security& security) {
  const Certificates chain = certificates_of("tls_cert", files.certificate, security.certificate);
  const Certificates authority = certificates_of("tls_ca", files.authority, security.authority);
  const Bio reader = reader_of(security.key);
  const Key key(PEM_read_bio_PrivateKey(reader.get(), nullptr, no_passphrase, nullptr));
  X509* const own = sk_X509_value(chain.get(), 0);
  const bool fits = key && X509_check_private_key(own, key.get()) == 1;
  ERR_clear_error();
  if (!key)
    throw Error("--tls_key: " + files.key +
                " holds no private key in PEM form, or one with a passphrase; give one without");
  if (!fits)
    throw Error("--tls_key: " + files.key + " is not the key of --tls_cert=" + files.certificate);

  const Store store(X509_STORE_new());
  for (int i = 0; i < sk_X509_num(authority.get()); ++i)
    X509_STORE_add_cert(store.get(), sk_X509_value(authority.get(), i));
  X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN);  // an authority need be no root
  const Context context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), own, chain.get());
  const bool accepted = X509_verify_cert(context.get()) == 1;
  const std::string why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
  ERR_clear_error();
  if (!accepted)
    throw Error("--tls_cert: " + files.certificate + " is not accepted by --tls_ca=" +
                files.authority + ", so peers would refuse it: " + why);
}

}  // namespace towers::cluster
