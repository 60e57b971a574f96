#!/usr/bin/env bash
# Installs libCacheSim, a cache simulator that Onefold's buffer policies are compared with, into a
# virtual environment of its own. Nothing of Onefold needs it.
#
#   scripts/libcachesim-venv.sh DIR     exit 3, with the reason on stdout, if it cannot be installed
set -uo pipefail

# The version that the limits of scripts/libcachesim_oracle.py were measured with.
VERSION=0.3.5

dir=${1:?usage: scripts/libcachesim-venv.sh DIR}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Its reader of traces in a cloud store is not used, so neither are most of the packages it names.
packages=("libcachesim==$VERSION" numpy)
if ! python3 -m venv "$dir" >"$log" 2>&1; then
  reason="python3 cannot make a virtual environment"
elif ! "$dir/bin/python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 \
  --only-binary :all: --no-deps --no-compile "${packages[@]}" >"$log" 2>&1; then
  reason="no wheel of libcachesim $VERSION for this machine, or no network"
elif ! "$dir/bin/python" -c 'import libcachesim' >"$log" 2>&1; then
  reason="libcachesim $VERSION does not start on this machine"
else
  exit 0
fi
echo "$reason: $(tail -n 1 "$log")"
exit 3
