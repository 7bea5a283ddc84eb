#!/bin/sh
# Runs one command, "$@", at an emulated cluster of its own: ./ci.sh ./my-tests. Its exit code is the command's. CONF: another slurm.conf.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
end() {
    code=$?
    [ $code -eq 0 ] || tail -n 50 "$work"/run/logs/*.log >&2
    understudy down --run-dir "$work/run" >&2 || true
    rm -rf "$work"
    exit $code
}
trap end EXIT
understudy up --conf "${CONF:-$here/ci.conf}" --executor real --run-dir "$work/run" >&2
understudy exec --run-dir "$work/run" -- "$@"
