#!/bin/sh
# Installs the system packages that tests want and pip cannot give: Debian's systemd, for systemd-analyze, Slurm, OAR and
# Prometheus, for promtool.
# Where that cannot be done it says which tests will be skipped; it never fails the run. No service is started.
missing() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 || return 0
    done
    return 1
}

install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 0
    echo "installing $*, for tests" >&2
    export DEBIAN_FRONTEND=noninteractive
    made=
    if [ ! -e /usr/sbin/policy-rc.d ]; then
        made=yes
        printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d
    fi
    {
        apt-get install -y -qq --no-install-recommends "$@" ||
            { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"; }
    } >/dev/null 2>&1 </dev/null
    [ -z "$made" ] || rm -f /usr/sbin/policy-rc.d
}

slurm="munged slurmctld slurmd sbatch squeue sinfo scontrol scancel sdiag"
site="$slurm slurmdbd slurmrestd mariadbd"
plugins="slurm-wlm-basic-plugins slurm-wlm-jwt-plugin slurm-wlm-mysql-plugin"
missing systemd-analyze systemctl journalctl && install systemd
missing ip nsenter unshare pivot_root && install iproute2 util-linux mount
# shellcheck disable=SC2086
missing $site && install slurmctld slurmd slurmdbd slurmrestd slurm-client munge mariadb-server $plugins
oar="oarsub oarstat oarnotify oar-database psql taktuk"
# shellcheck disable=SC2086
missing $oar && install postgresql openssh-server oar-server oar-user oar-node oar-server-pgsql oar-user-pgsql taktuk \
    libjson-perl
missing faketime && install faketime
missing promtool && install prometheus
missing bwrap && install bubblewrap python3-seccomp
missing chromium chromedriver && install chromium chromium-driver
simgrid() {
    /usr/bin/python3 -c "import simgrid" >/dev/null 2>&1
}
simgrid || install python3-simgrid
simgrid ||
    echo "WARNING: python3-simgrid is not here: tests/real/test_simgrid.py is SKIPPED" >&2
missing faketime &&
    echo "WARNING: faketime is not here: tests of Slurm's rules and of a clock that is stepped are SKIPPED" >&2
missing promtool &&
    echo "WARNING: promtool is not here (package prometheus): the test that it takes the alert rules is SKIPPED" >&2
missing chromium chromedriver &&
    echo "WARNING: no chromium here (packages chromium chromium-driver): tests/web/test_browser.py is SKIPPED" >&2
missing bwrap &&
    echo "WARNING: bubblewrap is not here: the test of the service under the restrictions of its unit is SKIPPED" >&2
missing /usr/lib/systemd/systemd ip nsenter unshare pivot_root journalctl &&
    echo "WARNING: no systemd that can be started (packages systemd iproute2 util-linux): tests/real/systemd is SKIPPED" >&2
missing systemd-analyze &&
    echo "WARNING: systemd-analyze is not here (package systemd): tests/systemd/test_units.py SKIPS what needs it" >&2
# shellcheck disable=SC2086
if missing $site || [ "$(id -u)" != 0 ]; then
    echo "WARNING: no Slurm here (packages slurmctld slurmd slurmdbd slurmrestd slurm-client munge mariadb-server" \
        "$plugins, and root): tests/real/slurm is SKIPPED" >&2
fi
# shellcheck disable=SC2086
if missing $oar || [ "$(id -u)" != 0 ]; then
    echo "WARNING: no OAR here (packages postgresql openssh-server oar-server oar-user oar-node oar-server-pgsql" \
        "oar-user-pgsql taktuk libjson-perl, and root): tests/real/oar is SKIPPED" >&2
fi
exit 0
