#!/bin/sh
# The tour that `make run` gives: real programs profiled, simulated, mapped, run and compared with the forecast.
set -eu
directory=${1:-demo-run}
show() {
    printf '\n$ %s\n' "$*"
    "$@"
}
show pilotfish demo --force "$directory" >/dev/null
cd "$directory"
printf '\n$ sh measure.sh          # profile the demo programs\n'
sh measure.sh >measure.log
pilotfish profile list
show pilotfish plan workflow.yaml --cluster cluster.yaml --compare
show pilotfish plan workflow.yaml --cluster cluster.yaml --plot plan.html
show pilotfish run workflow.yaml --cluster cluster.yaml --metrics-port 9836
printf '\nThe picture of the plan is %s/plan.html.\nNext: README.md, "With Slurm" or "On one machine".\n' "$directory"
