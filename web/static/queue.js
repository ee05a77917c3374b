// The table of jobs, a page of it at a time, each with its times on one axis.

import { clock, count, from_now } from "./board.js";

const PAGE = 50, WIDE = 256, SVG = "http://www.w3.org/2000/svg";

function drawn(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

export class Queue {
  constructor(parts) {
    Object.assign(this, parts, { first: 0, board: null });
    this.labels = [...this.axis.parentElement.children].map((head) => head.textContent);
    this.find.addEventListener("input", () => { this.first = 0; this.draw(this.board); });
    this.state.addEventListener("change", () => { this.first = 0; this.draw(this.board); });
    this.before.addEventListener("click", () => { this.first -= PAGE; this.draw(this.board); });
    this.after.addEventListener("click", () => { this.first += PAGE; this.draw(this.board); });
  }

  draw(board) {
    this.board = board;
    if (!board) return;
    const jobs = this._chosen(), now = board.now;
    this.first = Math.max(0, Math.min(this.first, Math.floor(Math.max(0, jobs.length - 1) / PAGE) * PAGE));
    const shown = jobs.slice(this.first, this.first + PAGE);
    const times = shown.flatMap((job) => ["start_time", "start_late", "finish_time", "manager_start_time"].map((column) => board.of(job, column)));
    const last = Math.max(now + 600, ...times.filter((time) => time !== null));
    const x_of = (time) => 4 + (WIDE - 8) * Math.max(0, Math.min(1, (time - now) / (last - now)));
    this.axis.textContent = `Now to ${clock(last)}`;
    this.rows.replaceChildren(...shown.map((job) => this._row(job, now, x_of)));
    const left_out = board.about.jobs_left_out;
    this.text.textContent = `${jobs.length.toLocaleString()} of ${count(board.jobs.size, "job")}${left_out ? `; ${count(left_out, "more job")} not shown` : ""}`;
    this.page.textContent = jobs.length ? `${this.first + 1} to ${this.first + shown.length}` : "none";
    this.before.disabled = this.first === 0;
    this.after.disabled = this.first + PAGE >= jobs.length;
  }

  _chosen() {
    const board = this.board, words = this.find.value.toLowerCase().split(/\s+/).filter(Boolean), state = this.state.value;
    const jobs = [];
    for (const job of board.jobs.values()) {
      if (state === "pending" && !board.waits(job)) continue;
      if (state === "running" && board.waits(job)) continue;
      if (words.length) {
        const text = `${board.id(job)} ${board.of(job, "name")} ${board.user(job)} ${board.of(job, "partition")} ${board.of(job, "state")}`.toLowerCase();
        if (!words.every((word) => text.includes(word))) continue;
      }
      jobs.push(job);
    }
    const start = (job) => board.of(job, "start_time") ?? Infinity;
    return jobs.sort((one, other) => start(one) - start(other));
  }

  _row(job, now, x_of) {
    const board = this.board, row = document.createElement("tr"), link = document.createElement("a");
    link.href = `/jobs/${encodeURIComponent(board.of(job, "key")).replaceAll("%2F", "/")}`;
    link.dataset.go = "";
    link.textContent = board.id(job);
    const cell = (content, kind = "") => {
      const element = document.createElement("td");
      element.className = kind;
      element.dataset.label = this.labels[row.children.length];
      if (content === "") element.dataset.empty = "";
      element.append(content);
      if (kind === "cut") element.title = content;
      row.append(element);
    };
    cell(link);
    cell(board.of(job, "name"), "cut");
    cell(board.user(job), "cut");
    cell(board.of(job, "partition"));
    const waits = board.waits(job), expected = (column) => {
      const time = board.of(job, column);
      return waits && time !== null && time <= now ? "now" : from_now(time, now);
    };
    cell(expected("start_time") || "not known", "num");
    cell(waits ? expected("start_late") : "", "num");
    cell(expected("manager_start_time"), "num");
    cell(expected("finish_time"), "num");
    cell(this._times(job, now, x_of), "times");
    cell(board.of(job, "why"), "why");
    return row;
  }

  _times(job, now, x_of) {
    const board = this.board, picture = drawn("svg", { viewBox: `0 0 ${WIDE} 18`, "aria-hidden": "true" });
    const [start, early, late, finish, manager] = ["start_time", "start_early", "start_late", "finish_time", "manager_start_time"].map((column) => board.of(job, column));
    if (start !== null && finish !== null && finish > now) {
      picture.append(drawn("line", { class: board.waits(job) ? "run" : "run live", x1: x_of(start), x2: x_of(finish), y1: 9, y2: 9 }));
    }
    if (early !== null && late !== null) {
      picture.append(drawn("rect", { class: "interval", x: x_of(early), width: Math.max(2, x_of(late) - x_of(early)), y: 5, height: 8 }));
    }
    if (start !== null && board.waits(job)) picture.append(drawn("circle", { class: "dot", cx: x_of(start), cy: 9, r: 4 }));
    if (manager !== null) picture.append(drawn("path", { class: "diamond", d: `M${x_of(manager)} 4l5 5-5 5-5-5z` }));
    return picture;
  }
}
