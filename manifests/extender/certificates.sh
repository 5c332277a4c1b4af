#!/bin/sh
# Creates certificates for the extender, the rescheduler and their clients, signed by an authority of their own.
#
#   certificates.sh FOLDER [DAYS]      creates what is missing; delete a pair to renew it
#
# ca.crt and ca.key are the authority; tls.* is the extender's and rescheduler-tls.* the rescheduler's, as servers;
# scheduler.* and rescheduler.* are client certificates.
set -eu
. "$(dirname "$0")/../signing.sh"
open_folder "${1:?"usage: certificates.sh FOLDER [DAYS]"}" "${2:-365}"
names="DNS:reberth-extender.reberth-system.svc,DNS:localhost,IP:127.0.0.1"
rescheduler_names="DNS:reberth-rescheduler.reberth-system.svc,DNS:localhost,IP:127.0.0.1"

make_authority reberth-extender-ca
sign tls reberth-extender extendedKeyUsage=serverAuth "subjectAltName=$names"
sign rescheduler-tls reberth-rescheduler extendedKeyUsage=serverAuth "subjectAltName=$rescheduler_names"
sign scheduler system:kube-scheduler extendedKeyUsage=clientAuth
sign rescheduler reberth-rescheduler extendedKeyUsage=clientAuth
