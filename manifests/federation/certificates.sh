#!/bin/sh
# The certificate of the federation's webhook, signed by an authority of its own.
#
#   certificates.sh FOLDER [DAYS]      makes what is not there yet; remove tls.* to have them renewed
#
# Then, for the hub:
#   kubectl -n reberth-system create secret tls reberth-federation-webhook-tls --cert=FOLDER/tls.crt --key=FOLDER/tls.key
# and base64 of FOLDER/ca.crt as clientConfig.caBundle in both configurations of webhook.yaml.
set -eu
folder=${1:?"usage: certificates.sh FOLDER [DAYS]"}
days=${2:-365}
name=reberth-federation-webhook.reberth-system.svc
umask 077
mkdir -p "$folder"
cd "$folder"

new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }

if [ ! -e ca.crt ]; then
  new_key ca.key
  openssl req -x509 -new -key ca.key -subj "/CN=reberth-federation-ca" -days 3650 \
    -addext "keyUsage=critical,keyCertSign,cRLSign" -out ca.crt
fi
[ -e tls.crt ] && exit
new_key tls.key
openssl req -new -key tls.key -subj "/CN=$name" -out tls.csr
printf 'basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\nsubjectAltName=DNS:%s,DNS:localhost,IP:127.0.0.1\n' \
  "$name" > tls.ext
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -days "$days" -extfile tls.ext -out tls.crt 2> /dev/null
rm tls.csr tls.ext
