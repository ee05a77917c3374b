#!/bin/sh
# Make the virtual environment $1 with pilotfish in it, or install the extra $2 in that environment. Needs Python 3.11 or
# newer. Changes nothing outside of $1, but for one thing: root on a Debian without the package python3-venv gets it.
set -eu
venv=$1
install() {
    # Python compiles a module when it is first imported; most modules of the development tools never are.
    if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "$@" >"$venv/setup.log" 2>&1
    then
        cat "$venv/setup.log" >&2
        echo "setting up $venv failed: see above" >&2
        exit 1
    fi
}
if [ -n "${2:-}" ]; then
    # Not `-e .[$2]`: pilotfish is in use meanwhile.
    "$venv/bin/python" - "$2" >"$venv/$2.txt" <<'END'
import sys, tomllib

with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["project"]["optional-dependencies"][sys.argv[1]], sep="\n")
END
    install -r "$venv/$2.txt"
    exit
fi
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
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing python3-venv" >&2
        apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null
    else
        echo "Python's venv module is missing: ask for the package python3-venv (apt-get install python3-venv)" >&2
        exit 1
    fi
fi
echo "setting up $venv (once)" >&2
"$python" -m venv "$venv"
install --upgrade pip  # the one that comes with Python 3.11 takes twice as long
install -e .
