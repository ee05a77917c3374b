#!/bin/sh
# Make the virtual environment $1 with pilotfish and its development tools in it. Needs Python 3.11 or newer with its
# venv module, which is a package of its own on Debian. Changes nothing outside of $1.
set -eu
venv=$1
python=
for candidate in python3 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null 2>&1 &&
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "pilotfish needs Python 3.11 or newer; none was found on the PATH" >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    echo "Python's venv module is missing: install the package python3-venv (apt-get install python3-venv)" >&2
    exit 1
fi
echo "setting up $venv (once)" >&2
"$python" -m venv "$venv"
log="$venv/setup.log"
if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[dev]' >"$log" 2>&1; then
    cat "$log" >&2
    echo "setting up $venv failed: see above" >&2
    exit 1
fi
