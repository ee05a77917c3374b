"""First come, first served, without backfilling: a decision component of Batsim by itself, without pilotfish.

Usage: fcfs_component.py ENDPOINT
"""

import json
import sys

import zmq

socket = zmq.Context().socket(zmq.REP)
socket.bind(sys.argv[1])
free, queue, held, ended = [], [], {}, False
while not ended:
    message = json.loads(socket.recv())
    decisions = []
    for event in message["events"]:
        data = event["data"]
        if event["type"] == "SIMULATION_BEGINS":
            free = list(range(data["nb_compute_resources"]))
            total = len(free)
        elif event["type"] == "JOB_SUBMITTED" and data["job"]["res"] > total:
            decisions.append(("REJECT_JOB", {"job_id": data["job_id"]}))
        elif event["type"] == "JOB_SUBMITTED":
            queue.append((data["job_id"], data["job"]["res"]))
        elif event["type"] == "JOB_COMPLETED":
            free = sorted(free + held.pop(data["job_id"]))
        ended |= event["type"] == "SIMULATION_ENDS"
    while queue and queue[0][1] <= len(free):
        job, size = queue.pop(0)
        held[job], free = free[:size], free[size:]
        decisions.append(("EXECUTE_JOB", {"job_id": job, "alloc": " ".join(map(str, held[job]))}))
    events = [{"timestamp": message["now"], "type": kind, "data": data} for kind, data in decisions]
    socket.send(json.dumps({"now": message["now"], "events": events}).encode())
