#!/bin/sh
# Run a job of trioute-spark by spark-submit, here or on a cluster:
#
#   deploy/spark/submit.sh losses /srv/telemetry --out /srv/tables/losses
#   MASTER=spark://spark.example.com:7077 deploy/spark/submit.sh losses ...
#   MASTER=k8s://https://k8s.example.com:6443 IMAGE=registry.example.com/trioute-spark \
#       deploy/spark/submit.sh losses ...
#
# MASTER is local[2] unless it is set. SUBMIT_OPTIONS are passed to spark-submit. On Kubernetes the driver runs
# in a pod of IMAGE (Containerfile); elsewhere it runs here, and needs trioute-spark installed beside PySpark.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
master=${MASTER:-local[2]}
job=$here/job.py
case $master in
k8s://*)
    : "${IMAGE:?set IMAGE to the image that was built from deploy/spark/Containerfile}"
    job=local:///opt/trioute/job.py
    # shellcheck disable=SC2086  # a list of options
    set -- "$job" "$@" --master "$master"
    exec spark-submit --master "$master" --deploy-mode cluster --name trioute-spark \
        --properties-file "$here/spark-defaults.conf" \
        --conf "spark.kubernetes.container.image=$IMAGE" \
        ${SUBMIT_OPTIONS:-} "$@"
    ;;
esac
# shellcheck disable=SC2086  # a list of options
exec spark-submit --master "$master" --name trioute-spark \
    --properties-file "$here/spark-defaults.conf" \
    ${SUBMIT_OPTIONS:-} "$job" "$@" --master "$master"
