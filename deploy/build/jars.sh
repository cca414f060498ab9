#!/bin/sh
# Make sure that the suite finds a client for Java, with all that it needs (from Maven, pinned in a pom.xml):
# jars.sh FOLDER POM NAME. It runs on the Java of the machine. Where it cannot be had, whoever needs it skips.
set -eu
cd "$(dirname "$0")/../.."

MAVEN_PLUGIN=org.apache.maven.plugins:maven-dependency-plugin:3.8.1
FOLDER=$1
POM=$2
NAME=$3

sh deploy/build/require.sh javac=openjdk-17-jdk-headless
if ! cmp -s "$POM" "$FOLDER/pom.xml"; then
    sh deploy/build/require.sh mvn=maven
    rm -rf "$FOLDER"
    if mvn -q -B -f "$POM" "$MAVEN_PLUGIN:copy-dependencies" -DincludeScope=runtime -DoutputDirectory="$PWD/$FOLDER" >&2; then
        cp "$POM" "$FOLDER/pom.xml"
    else
        rm -rf "$FOLDER"
        echo "not there: $NAME (needs mvn, of Debian's package maven); tests that need it are skipped" >&2
    fi
fi
