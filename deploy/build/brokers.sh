#!/bin/sh
# Make sure that the suite finds the brokers it puts behind the router, in .brokers:
#   rabbitmq   RabbitMQ with its AMQP 1.0 plugin and its Erlang, and Proton's example broker (Debian packages)
#   artemis    ActiveMQ Artemis (from Maven, pinned), which runs on the Java of the machine
# Debian's packages are unpacked rather than installed: installing them would start a server.
# What cannot be had is named, and whoever needs it skips.
set -eu
cd "$(dirname "$0")/../.."

ARTEMIS=2.44.0
ARTEMIS_SHA512=d709eafe1ead38234216d324e9876ee0f66265a2deba36b526f64512de4da1e25ae6b5430a03dc002071ed91553c72f3ef01211d7414b14752272cbec66883b4
MAVEN_PLUGIN=org.apache.maven.plugins:maven-dependency-plugin:3.8.1

missing() {
    rm -rf ".brokers/$1"
    echo "not there: $2; tests that need it are skipped" >&2
}

# Everything of a package and of the Erlang packages it wants, under .brokers/debian.
debian() {
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
    if [ "$(id -u)" = 0 ]; then
        flock . apt-get -qq update || true
    fi
    erlang=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
        --no-replaces --no-enhances rabbitmq-server | grep -oE '^erlang-[a-z0-9-]+' | sort -u)
    rm -rf .brokers/debian
    mkdir -p .brokers/debian/packages
    # as root apt would rather fetch as another user, who may not write here, and says so
    # shellcheck disable=SC2086  # a list of words
    (cd .brokers/debian/packages && flock ../../.. apt-get -qq download rabbitmq-server libqpid-proton11-dev-examples $erlang 2>/dev/null) \
        || return 1
    for package in .brokers/debian/packages/*.deb; do
        dpkg-deb -x "$package" .brokers/debian || return 1
    done
    rm -r .brokers/debian/packages
    # its launchers name the place that the package is made for
    here=$PWD/.brokers/debian/usr/lib/erlang
    sed -i "s|/usr/lib/erlang|$here|" "$here"/bin/erl "$here"/erts-*/bin/erl
    echo "$here" >.brokers/debian/ready
}

# The tree may have been moved or copied since Erlang was unpacked.
if [ "$(cat .brokers/debian/ready 2>/dev/null)" != "$PWD/.brokers/debian/usr/lib/erlang" ]; then
    debian || missing debian "RabbitMQ and Proton's broker (rabbitmq-server, libqpid-proton11-dev-examples: Debian packages)"
fi

artemis() {
    archive=apache-artemis-$ARTEMIS-bin.tar.gz
    rm -rf .brokers/artemis
    mkdir -p .brokers/artemis
    mvn -q -B "$MAVEN_PLUGIN:copy" -Dartifact="org.apache.activemq:apache-artemis:$ARTEMIS:tar.gz:bin" \
        -DoutputDirectory=.brokers/artemis >&2 || return 1
    echo "$ARTEMIS_SHA512  .brokers/artemis/$archive" | sha512sum -c --quiet >&2 || return 1
    tar -xzf ".brokers/artemis/$archive" -C .brokers/artemis --strip-components=1 || return 1
    rm ".brokers/artemis/$archive"
    echo $ARTEMIS >.brokers/artemis/ready
}

sh deploy/build/require.sh java=openjdk-17-jre-headless
if [ "$(cat .brokers/artemis/ready 2>/dev/null)" != $ARTEMIS ]; then
    sh deploy/build/require.sh mvn=maven
    artemis || missing artemis "ActiveMQ Artemis (needs mvn, of Debian's package maven)"
fi
