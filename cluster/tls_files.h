#pragma once
// Whether the files of mutual TLS fit together: found at the start, where it can be said which one
// is wrong, and not by peers, who can only refuse.

#include "cluster/security.h"

namespace towers::cluster {

// security: the contents of `files`. Throws Error that names the flag and the file: no PEM
// certificate or key in it, a key of another certificate, a certificate that the authority has not
// signed or whose time is over.
void check_tls_files(const SecurityFiles& files, const Security& security);

}  // namespace towers::cluster
