// The page: it takes the changes of the board, and draws what is on the screen.

import { Board, facts_list } from "./board.js";
import { Gantt } from "./gantt.js";
import { job_body } from "./job.js";
import { NodesPicture } from "./nodes.js";
import { Queue } from "./queue.js";
import { show_quality } from "./quality.js";

const by_id = (id) => document.getElementById(id);
const board = new Board();
const gantt = new Gantt(by_id("gantt"), by_id("gantt-text"), (key) => go(`/jobs/${key}`));
const queue = new Queue({
  rows: by_id("rows"), find: by_id("find"), state: by_id("state"), text: by_id("queue-text"), page: by_id("page"),
  before: by_id("before"), after: by_id("after"), axis: by_id("axis"),
});
const nodes = new NodesPicture(by_id("nodes"), by_id("nodes-text"), by_id("nodes-key"), () => {});

let waiting = false;
function draw() {
  if (waiting || !board.about.time) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    nodes.draw(board);
    gantt.draw(board);
    queue.draw(board);
    show_facts();
  });
}

function show_facts() {
  const about = board.about;
  by_id("cluster").textContent = about.cluster;
  document.title = `${about.cluster} - pilotfish`;
  const facts = [["mode", about.mode], ["policy", about.policy], ["cycle", about.cycle]];
  if (about.pauses?.length) facts.push(["paused", about.pauses.map((pause) => pause.partition || "all jobs").join(", ")]);
  by_id("facts").replaceChildren(...facts.map(([name, value]) => {
    const item = document.createElement("li"), word = document.createElement("b");
    word.textContent = value;
    item.append(`${name} `, word);
    return item;
  }));
  facts_list(by_id("guard"), board.facts, board.now);
}

function trouble(text) {
  by_id("trouble").hidden = !text;
  by_id("trouble").textContent = text;
}

function follow() {
  const events = new EventSource("/api/v1/events");
  events.addEventListener("board", (event) => { board.replace(JSON.parse(event.data)); draw(); });
  events.addEventListener("change", (event) => { board.change(JSON.parse(event.data)); draw(); });
  events.addEventListener("trouble", (event) => trouble(JSON.parse(event.data).trouble));
  events.addEventListener("error", () => trouble("The page has lost its server; it tries again."));
  events.addEventListener("open", () => trouble(""));
}

// Show what the address names: a job above the cluster, or the cluster alone.
async function show_address() {
  const key = decodeURIComponent(location.pathname.replace(/^\/jobs\//, ""));
  const section = by_id("job"), is_job = location.pathname.startsWith("/jobs/");
  section.hidden = !is_job;
  if (!is_job) return;
  by_id("job-title").textContent = `Job ${key}`;
  by_id("job-body").replaceChildren(await job_body(key));
  by_id("job-title").focus();
}

function go(path) {
  history.pushState(null, "", path);
  show_address();
  scrollTo({ top: 0 });
}

addEventListener("popstate", show_address);
addEventListener("click", (event) => {
  const link = event.target.closest("a[data-go]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(link.getAttribute("href"));
});
addEventListener("resize", draw);
by_id("measure").addEventListener("change", (event) => { nodes.measure = event.target.value; draw(); });
by_id("span").addEventListener("click", (event) => {
  if (!event.target.dataset.hours) return;
  gantt.hours = Number(event.target.dataset.hours);
  for (const button of by_id("span").children) button.setAttribute("aria-pressed", String(button === event.target));
  draw();
});

function set_theme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  by_id("theme").textContent = dark ? "Light" : "Dark";
  draw();
}
const wish = matchMedia("(prefers-color-scheme: dark)");
set_theme((localStorage.getItem("theme") ?? (wish.matches ? "dark" : "light")) === "dark");
by_id("theme").addEventListener("click", () => {
  const dark = !document.documentElement.classList.contains("dark");
  localStorage.setItem("theme", dark ? "dark" : "light");
  set_theme(dark);
});
setInterval(draw, 30000);
show_quality(by_id("quality"));
setInterval(() => show_quality(by_id("quality")), 300000);
follow();
show_address();
