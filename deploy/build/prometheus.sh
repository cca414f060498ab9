#!/bin/sh
# Make sure that the suite finds Prometheus and promtool: on the path, or in .prometheus/usr/bin.
# Debian's package is unpacked rather than installed: installing it would start a server.
set -eu
cd "$(dirname "$0")/../.."

command -v prometheus >/dev/null && command -v promtool >/dev/null && exit 0
[ -x .prometheus/usr/bin/promtool ] && exit 0

if command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; then
    if [ "$(id -u)" = 0 ]; then
        flock . apt-get -qq update || true
    fi
    rm -rf .prometheus
    mkdir .prometheus
    # as root apt would rather fetch as another user, who may not write here, and says so
    if (cd .prometheus && flock .. apt-get -qq download prometheus 2>/dev/null); then
        dpkg-deb -x .prometheus/prometheus_*.deb .prometheus
        rm .prometheus/prometheus_*.deb
        exit 0
    fi
    rm -rf .prometheus
fi
echo "not installed: prometheus (a Debian package name); tests that need it are skipped" >&2
