#!/bin/sh
# Run the tests with the command given, whose first word is a Python, and print what they did not reach.
# What tests run in processes of their own (commands, daemons) and compiled kernels are not counted, nor properties, nor
# rows of a table but the first, nor what a test reaches late: see tests/conftest.py.
"$@" --cov --cov-report=
code=$?
"$1" -m coverage combine --quiet --append .coverage-imports  # see tests/workers.py
printf '\ncoverage by the tests in this process, the ten worst files of at least ten statements:\n'
"$1" -m coverage report --sort=cover | awk '
    NR == 1 { print }
    /^[^ ]+\.py / && $2 >= 10 && shown < 10 { print; shown++ }
    /^TOTAL/ { print }'
exit $code
