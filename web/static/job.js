// One job: its times, why it waits, and its story.

import { clock, from_now, span } from "./board.js";

function listed(facts) {
  const list = document.createElement("dl");
  for (const [name, value] of facts) {
    if (value === null || value === undefined || value === "") continue;
    const term = document.createElement("dt"), text = document.createElement("dd");
    term.textContent = name;
    text.textContent = value;
    list.append(term, text);
  }
  return list;
}

export async function job_body(key) {
  const answer = await fetch(`/api/v1/jobs/${encodeURIComponent(key).replaceAll("%2F", "/")}`);
  const reply = await answer.json();
  const body = document.createElement("div");
  if (!answer.ok) {
    body.textContent = reply.error;
    return body;
  }
  const job = reply.job, plan = job.plan, now = reply.time;
  const at = (time) => (time ? `${clock(time)}, ${from_now(time, now)}` : null);
  const within = (pair) => (pair ? `${clock(pair[0])} to ${clock(pair[1])}` : null);
  body.append(listed([
    ["State", job.state], ["Name", job.name], ["User", reply.owner], ["Partition", job.partition],
    ["Submitted", at(reply.submit_time)], ["Waits for", reply.after?.join(", ")], ["Why it waits", reply.waits],
    ["Expected start", plan && at(plan.start_time)], ["with 80 % between", plan && within(plan.start_within)],
    ["The resource manager says", at(job.manager_start_time)], ["Expected end", at(plan?.finish_time ?? job.forecast_finish_time)],
    ["Started", at(job.start_time)], ["Ended", at(job.finish_time)], ["Nodes", (plan?.nodes?.length ? plan.nodes : job.nodes)?.join(", ")],
    ["Time limit", job.walltime && span(job.walltime)], ["Group", reply.group], ["Start not known", job.unknown],
  ]));
  const title = document.createElement("h3"), story = document.createElement("ol");
  title.textContent = "Its story";
  story.id = "story";
  for (const record of reply.story) {
    const item = document.createElement("li"), time = document.createElement("time");
    time.textContent = `${clock(record.time)} `;
    time.dateTime = new Date(record.time * 1000).toISOString();
    item.append(time, `${record.kind}: ${record.text}`);
    story.append(item);
  }
  if (story.children.length) body.append(title, story);
  return body;
}
