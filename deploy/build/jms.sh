#!/bin/sh
# Make sure that the suite finds Qpid JMS, in .jms: the client and all that it needs (from Maven, pinned in
# tests/interop/jms/pom.xml). It runs on the Java of the machine. Where it cannot be had, whoever needs it skips.
set -eu
cd "$(dirname "$0")/../.."

MAVEN_PLUGIN=org.apache.maven.plugins:maven-dependency-plugin:3.8.1
POM=tests/interop/jms/pom.xml

sh deploy/build/require.sh javac=openjdk-17-jdk-headless
if ! cmp -s $POM .jms/pom.xml; then
    sh deploy/build/require.sh mvn=maven
    rm -rf .jms
    if mvn -q -B -f $POM "$MAVEN_PLUGIN:copy-dependencies" -DincludeScope=runtime -DoutputDirectory="$PWD/.jms" >&2; then
        cp $POM .jms/pom.xml
    else
        rm -rf .jms
        echo "not there: Qpid JMS (needs mvn, of Debian's package maven); tests that need it are skipped" >&2
    fi
fi
