#!/bin/sh
# Certificates for the extender, the rescheduler and those who may call them, signed by an authority of their own.
#
#   certificates.sh FOLDER [DAYS]      makes what is not there yet; remove a pair to have it renewed
#
# ca.crt and ca.key are the authority; tls.* is the extender's and rescheduler-tls.* the rescheduler's, as servers;
# scheduler.* and rescheduler.* are the callers'.
set -eu
folder=${1:?"usage: certificates.sh FOLDER [DAYS]"}
days=${2:-365}
names="DNS:reberth-extender.reberth-system.svc,DNS:localhost,IP:127.0.0.1"
rescheduler_names="DNS:reberth-rescheduler.reberth-system.svc,DNS:localhost,IP:127.0.0.1"
umask 077
mkdir -p "$folder"
cd "$folder"

new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }

sign() { # name, subject, extensions
  [ -e "$1.crt" ] && return
  new_key "$1.key"
  openssl req -new -key "$1.key" -subj "/CN=$2" -out "$1.csr"
  printf '%s\n' "basicConstraints=CA:FALSE" "$3" > "$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -days "$days" -extfile "$1.ext" -out "$1.crt" 2> /dev/null
  rm "$1.csr" "$1.ext"
}

if [ ! -e ca.crt ]; then
  new_key ca.key
  openssl req -x509 -new -key ca.key -subj "/CN=reberth-extender-ca" -days 3650 \
    -addext "keyUsage=critical,keyCertSign,cRLSign" -out ca.crt
fi
sign tls reberth-extender "$(printf 'extendedKeyUsage=serverAuth\nsubjectAltName=%s' "$names")"
sign rescheduler-tls reberth-rescheduler \
  "$(printf 'extendedKeyUsage=serverAuth\nsubjectAltName=%s' "$rescheduler_names")"
sign scheduler system:kube-scheduler "extendedKeyUsage=clientAuth"
sign rescheduler reberth-rescheduler "extendedKeyUsage=clientAuth"
