#!/bin/sh
# Creates the certificate of the federation's webhook, signed by an authority of its own.
#
#   certificates.sh FOLDER [DAYS]      creates what is missing; delete tls.* to renew them
#
# Then, for the hub:
#   kubectl -n reberth-system create secret tls reberth-federation-webhook-tls --cert=FOLDER/tls.crt --key=FOLDER/tls.key
# and put the base64 of FOLDER/ca.crt into clientConfig.caBundle of both configurations in webhook.yaml.
set -eu
. "$(dirname "$0")/../signing.sh"
open_folder "${1:?"usage: certificates.sh FOLDER [DAYS]"}" "${2:-365}"
name=reberth-federation-webhook.reberth-system.svc

make_authority reberth-federation-ca
sign tls "$name" extendedKeyUsage=serverAuth "subjectAltName=DNS:$name,DNS:localhost,IP:127.0.0.1"
