"""First come, first served, without backfilling: a decision component of Batsim 5 by itself, without pilotfish.

Usage: fcfs_component_5.py ENDPOINT
"""

import json
import struct
import sys

import zmq

socket = zmq.Context().socket(zmq.REP)
socket.bind(sys.argv[1])
init = socket.recv()
assert struct.unpack("=I", init[:4]) == (len(init) - 4,)
features = dict.fromkeys(("dynamic_registration", "profile_reuse", "acknowledge_dynamic_jobs"), False)
hello = {"batprotocol_version": "1.0.0", "decision_component_name": "fcfs", "decision_component_version": "1",
         "decision_component_commit": "", "requested_simulation_features": features}  # fmt: skip
said = {"now": 0.0, "events": [{"timestamp": 0.0, "event_type": "EDCHelloEvent", "event": hello}]}
socket.send(struct.pack("=I", 2) + json.dumps(said).encode())
placement = {"executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
             "executor_placement": {"strategy": "SpreadOverHostsFirst"}}  # fmt: skip
free, queue, held, ended = [], [], {}, False
while not ended:
    raw = socket.recv()
    assert raw.endswith(b"\0")
    message = json.loads(raw[:-1])
    decisions = []
    for event in message["events"]:
        kind, data = event["event_type"], event["event"]
        if kind == "SimulationBeginsEvent":
            free = [host["id"] for host in data["computation_hosts"]]
            total = data["computation_host_number"]
        elif kind == "JobSubmittedEvent" and data["job"]["resource_request"] > total:
            decisions.append(("RejectJobEvent", {"job_id": data["job_id"]}))
        elif kind == "JobSubmittedEvent":
            queue.append((data["job_id"], data["job"]["resource_request"]))
        elif kind == "JobCompletedEvent":
            free = sorted(free + held.pop(data["job_id"]))
        ended |= kind == "SimulationEndsEvent"
    while queue and queue[0][1] <= len(free):
        job, size = queue.pop(0)
        held[job], free = free[:size], free[size:]
        where = {"host_allocation": " ".join(map(str, held[job])), **placement}
        decisions.append(("ExecuteJobEvent", {"job_id": job, "allocation": where}))
    events = [{"timestamp": message["now"], "event_type": kind, "event": data} for kind, data in decisions]
    socket.send(json.dumps({"now": message["now"], "events": events}).encode())
