#!/bin/sh
# Copies kube-scheduler's certificates to this machine of the control plane. Run it every day, by cron or a timer:
# kube-scheduler reads changed files by itself.
#
#   fetch.sh [FOLDER]      default: /etc/kubernetes/reberth; kubectl must be able to read the Secret
set -eu
umask 077
folder=${1:-/etc/kubernetes/reberth}
mkdir -p "$folder"
for file in ca.crt scheduler.crt scheduler.key; do
  kubectl -n reberth-system get secret reberth-scheduler-certificates \
    -o "go-template={{index .data \"$file\" | base64decode}}" > "$folder/$file.new"
  [ -s "$folder/$file.new" ] || { echo "fetch.sh: $file: is empty" >&2; exit 1; }
done
for file in ca.crt scheduler.key scheduler.crt; do
  mv "$folder/$file.new" "$folder/$file"
done
