#!/bin/sh
# Print a Python that Trioute runs on (3.11 or later): $1 where given, else the first one found on PATH.
# As root on Debian, with none found, install the distribution's own.
set -eu

fits() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

candidates() {
    # pyenv keeps interpreters that are not on PATH; its shims answer to a name and then refuse to run.
    for root in "${PYENV_ROOT:-$HOME/.pyenv}"; do
        ls -d "$root"/versions/"$1".*/bin/python 2>/dev/null || true
    done
}

if [ $# -gt 0 ]; then
    for python in "python$1" $(candidates "$1"); do
        if fits "$python"; then echo "$python"; exit 0; fi
    done
    echo "no Python $1 found" >&2
    exit 1
fi

for attempt in first second; do
    for python in python3 python3.11 python3.12 python3.13 python3.14; do
        if fits "$python"; then command -v "$python"; exit 0; fi
    done
    if [ "$attempt" = first ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        export DEBIAN_FRONTEND=noninteractive
        { flock . apt-get -qq update && flock . apt-get -qq install -y --no-install-recommends python3 python3-venv; } >&2
    else
        break
    fi
done
echo "Trioute needs Python 3.11 or later. On Debian 12: apt-get install python3 python3-venv" >&2
exit 1
