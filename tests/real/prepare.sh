#!/bin/sh
# Installs the system packages that tests want and pip cannot give: Debian's systemd, for systemd-analyze. Where
# that cannot be done it says which tests will be skipped; it never fails the run.
tool=systemd-analyze
package=systemd
command -v "$tool" >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing $package, for $tool" >&2
    export DEBIAN_FRONTEND=noninteractive
    {
        apt-get install -y -qq --no-install-recommends "$package" ||
            { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$package"; }
    } >/dev/null 2>&1 </dev/null
fi
command -v "$tool" >/dev/null 2>&1 ||
    echo "WARNING: $tool is not here (package $package): tests/systemd/test_units.py SKIPS what needs it" >&2
exit 0
