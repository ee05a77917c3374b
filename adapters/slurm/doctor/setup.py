"""The commands that `pilotfish doctor --setup` and `--undo` print.

Rule: typed one after another they work. The Unix user comes before its account, because slurmctld looks up the user's
id when the account is added.
"""

from __future__ import annotations

CREATE_USER = ("install -D -m 644 systemd/pilotfish.sysusers.conf /etc/sysusers.d/pilotfish.conf", "systemd-sysusers")

SETUP = f"""\
# As root and an administrator of Slurm, in the source folder of pilotfish; ACCOUNT is any account in slurmdbd.
# The units expect the program at /usr/bin/pilotfish; docs/guides/slurm.md shows how to install it.
{CREATE_USER[0]}
{CREATE_USER[1]}
sacctmgr -i add user {{user}} account=ACCOUNT AdminLevel=Operator
install -D -m 644 -t /etc/systemd/system systemd/pilotfishd.service
install -D -m 644 -t /etc/systemd/system systemd/pilotfish-reap.service systemd/pilotfish-reap.timer
install -D -m 644 systemd/pilotfish.slurm.yaml /etc/pilotfish/pilotfish.yaml
pilotfish cluster --adapter slurm > /etc/pilotfish/cluster.yaml
install -D -m 644 systemd/pilotfish.tmpfiles.conf /etc/tmpfiles.d/pilotfish.conf
systemd-tmpfiles --create /etc/tmpfiles.d/pilotfish.conf
# So that a freed node is seen at once, also EpilogSlurmctld=/etc/pilotfish/pilotfish-job-end.sh in slurm.conf (restart
# slurmctld), and the SlurmUser under `events` in pilotfish.yaml:
install -m 755 -t /etc/pilotfish systemd/pilotfish-job-end.sh
pilotfish doctor --config /etc/pilotfish/pilotfish.yaml --user {{user}}
systemctl daemon-reload
systemctl enable --now pilotfishd pilotfish-reap.timer     # mode: shadow, until you change it
# The rest is in docs/guides/slurm.md."""

UNDO = """\
# Jobs that wait for pilotfish start by themselves when their hold is over; nothing has to be released.
# If job_submit.lua is in use: take lua out of JobSubmitPlugins in slurm.conf, and only then remove the file.
scontrol reconfigure
systemctl disable --now pilotfishd
runuser -u pilotfish -- pilotfish reap --config /etc/pilotfish/pilotfish.yaml --older-than 0  # takes the last pins back
systemctl disable --now pilotfish-reap.timer
sacctmgr -i modify user where name={user} set AdminLevel=None
# Or, if the account was made for this: sacctmgr -i delete user name={user}
rm -r /etc/pilotfish /etc/systemd/system/pilotfish* /etc/sysusers.d/pilotfish.conf /etc/tmpfiles.d/pilotfish.conf
systemctl daemon-reload
# Left: the program, the state (with names of jobs and users), the compiled kernels, and the Unix users. To remove them:
# rm -r /usr/bin/pilotfish /opt/pilotfish /var/lib/pilotfish /var/cache/pilotfish /run/pilotfish-asked
# userdel {user}
# userdel pilotfish-web"""
