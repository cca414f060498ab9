#!/bin/sh
# Make sure that commands exist: require.sh COMMAND=DEBIAN_PACKAGE ...
# As root on Debian the missing ones are installed. Elsewhere they are named, and whoever needs them skips.
set -eu

packages=
for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null 2>&1 || packages="$packages ${pair#*=}"
done
[ -n "$packages" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    # apt-get fails while another one runs, and environments may be made at the same time
    flock . apt-get -qq update
    # shellcheck disable=SC2086  # a list of words
    flock . apt-get -qq install -y --no-install-recommends $packages
else
    echo "not installed:$packages (Debian package names); tests that need them are skipped" >&2
fi
