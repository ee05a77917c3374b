// One job: its times, why it waits, and its story.

import { clock, facts_list } from "./board.js";

export async function job_body(key) {
  const answer = await fetch(`/api/v1/jobs/${encodeURIComponent(key).replaceAll("%2F", "/")}`);
  const reply = await answer.json();
  const body = document.createElement("div");
  if (!answer.ok) {
    body.textContent = reply.error;
    return body;
  }
  body.append(facts_list(document.createElement("dl"), reply.facts, reply.time));
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
