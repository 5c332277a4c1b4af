# Functions of the certificate scripts.
#
# Existing files are kept. A file gets its name only when it is complete, so an interrupted script can be run again.
umask 077

fail() { echo "${0##*/}: $*" >&2; exit 2; }

open_folder() { # folder, days
  case $2 in '' | *[!0-9]* | 0*) fail "DAYS: '$2' is not a whole number above 0" ;; esac
  command -v openssl > /dev/null || fail "openssl is missing: install it"
  mkdir -p "$1" && cd "$1" || exit 2
  days=$2
}

# Prints openssl's output only if it fails.
quietly() { # what it makes, command
  made=$1
  shift
  said=$("$@" 2>&1) || fail "cannot create $made: $said"
}

new_key() { quietly "$1" openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }

make_authority() { # name
  [ ! -e ca.crt ] || return 0
  [ ! -e ca.key ] || fail "ca.key exists without ca.crt: restore ca.crt, or delete ca.key to create a new authority"
  new_key ca.key.new
  quietly ca.crt openssl req -x509 -new -key ca.key.new -subj "/CN=$1" -days 3650 \
    -addext "keyUsage=critical,keyCertSign,cRLSign" -out ca.crt.new
  mv ca.key.new ca.key
  mv ca.crt.new ca.crt
}

sign() { # name, subject, line of extensions...
  [ ! -e "$1.crt" ] || return 0
  [ -e ca.key ] || fail "ca.key is missing, and $1.crt cannot be signed without it: restore it for this run"
  name=$1 subject=$2
  shift 2
  new_key "$name.key"
  quietly "$name.csr" openssl req -new -key "$name.key" -subj "/CN=$subject" -out "$name.csr"
  printf '%s\n' "basicConstraints=CA:FALSE" "$@" > "$name.ext"
  quietly "$name.crt" openssl x509 -req -in "$name.csr" -CA ca.crt -CAkey ca.key -days "$days" \
    -extfile "$name.ext" -out "$name.crt.new"
  mv "$name.crt.new" "$name.crt"
  rm "$name.csr" "$name.ext"
}
