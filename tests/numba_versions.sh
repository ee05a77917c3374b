#!/bin/sh
# Installs the oldest and the newest numba of the tested range (simulate/kernels/compile.py) with this checkout, each in
# a virtual environment of its own; compiles all kernels there, plans a workflow and replays a trace. The plan and the
# replay must be the same on both. Usage: sh tests/numba_versions.sh [PYTHON [VERSION...]]; takes some minutes.
set -eu
python=${1:-python3}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- 0.60.0 0.68.1
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
ln -s "$root" "$work/pilotfish"
cat >"$work/cluster.yaml" <<'YAML'
schema: pilotfish/cluster/v1
name: lab
node_types: {t: {cores: 2, memory: 1GiB, memory_bandwidth: 10GB/s}}
nodes: [{names: "n[1-2]", type: t}]
YAML
cat >"$work/workflow.yaml" <<'YAML'
schema: pilotfish/workflow/v1
name: dag
jobs:
  a: {profile: {service_demand: 10}}
  b: {after: [a], profile: {service_demand: 5, bandwidth: 8GB/s}}
  c: {after: [a], profile: {service_demand: 7, bandwidth: 8GB/s}}
YAML
{
    echo "; MaxProcs: 8"
    for i in 1 2 3 4 5 6 7 8 9; do
        echo "$i $((i * 3)) 0 $((i * 7)).5 $i -1 -1 $((i % 5 + 1)) 90 -1 1 1 1 1 1 1 -1 -1"
    done
} >"$work/trace.swf"
first=
for version in "$@"; do
    echo "numba $version" >&2
    venv="$work/$version"
    "$python" -m venv "$venv"
    needs=$("$python" -c 'import sys, tomllib
wanted = tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"]
print("\n".join(wanted))' "$root/pyproject.toml")
    echo "$needs" >"$work/needs"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "numba==$version" -r "$work/needs" 2>"$work/log" ||
        { cat "$work/log" >&2; exit 1; }
    run() {
        HOME="$work/home-$version" PYTHONPATH="$work" PILOTFISH_CACHE="$work/cache-$version" \
            "$venv/bin/python" -W error::RuntimeWarning -m pilotfish.cli "$@"
    }
    run warm
    [ -z "$(find "$work/cache-$version" -name '*.nbi')" ] || { echo "numba's own cache was used" >&2; exit 1; }
    out="$work/out-$version"
    run plan "$work/workflow.yaml" --cluster "$work/cluster.yaml" --json | grep -v simulated_in >"$out"
    for policy in easy conservative easy:order=sjf easy+opportunistic; do
        run simulate -w "$work/trace.swf" -p "$policy" --out "$work/run-$version-$policy" >/dev/null
        cat "$work/run-$version-$policy/jobs.csv" >>"$out"
    done
    [ -n "$first" ] || first=$out
    cmp "$first" "$out"
done
echo "the same plan and the same replays with numba $*" >&2
