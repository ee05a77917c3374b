// Past and future of the nodes: a row each, or less than a pixel of one where there are many.

import { colours, prepared, with_tip } from "./canvas.js";
import { clock, count as counted, span } from "./board.js";

const LEFT = 8, TOP = 20, STEPS_H = [0.25, 0.5, 1, 2, 6, 12, 24, 48];

export class Gantt {
  constructor(canvas, text, open) {
    Object.assign(this, { canvas, text, hours: 12, bars: [], board: null });
    with_tip(canvas, (x, y) => this.words(x, y), (x, y) => {
      const bar = this.bar_at(x, y);
      if (bar) open(bar.row[0]);
    });
  }

  draw(board) {
    this.board = board;
    const count = board.nodes.name.length, colour = colours();
    const row = Math.max(0.25, Math.min(14, 480 / Math.max(1, count))), height = Math.ceil(TOP + count * row + 4);
    const [context, width] = prepared(this.canvas, height);
    const now = board.now, back = this.hours * 3600 * 0.25, ahead = this.hours * 3600 * 0.75;
    this.begin = now - back;
    this.scale = (width - 2 * LEFT) / (back + ahead);
    this.row = row;
    const x_of = (time) => LEFT + (time - this.begin) * this.scale;
    this._axis(context, width, height, colour, x_of, now, ahead);
    this.bars = [];
    const end = now + ahead;
    for (const past of board.past) this._bar(past, board.of(past, "start_time"), board.of(past, "finish_time"), "past", end);
    let planned = 0, running = 0;
    for (const job of board.jobs.values()) {
      if (!board.of(job, "nodes")?.length) continue;
      const start = board.of(job, "start_time"), walltime = board.of(job, "walltime");
      if (start === null) continue;
      const finish = board.of(job, "finish_time"), limit = walltime === null ? null : start + walltime;
      if (board.waits(job)) {
        planned += 1;
        this._bar(job, start, finish ?? limit ?? end, "planned", end);
      } else {
        running += 1;
        if (limit !== null || finish === null) this._bar(job, start, limit ?? end, "limit", end);
        this._bar(job, start, finish ?? now, "running", end);
      }
    }
    for (const bar of this.bars) {
      const left = Math.max(LEFT, x_of(bar.from)), right = Math.min(width - LEFT, x_of(bar.to));
      if (right <= left) continue;
      context.fillStyle = context.strokeStyle = colour(bar.kind);
      for (const [first, last] of bar.nodes) {
        const y = TOP + first * row, tall = Math.max(0.5, (last - first + 1) * row - (row > 3 ? 1 : 0));
        if (bar.kind === "planned") {
          context.strokeRect(left + 0.5, y + 0.5, Math.max(1, right - left - 1), Math.max(1, tall - 1));
        } else {
          context.fillRect(left, y, Math.max(1, right - left), tall);
          if (tall > 2) {
            context.fillStyle = colour("panel");
            context.fillRect(left, y + tall - 0.5, right - left, 0.5);
            context.fillRect(right - 1, y, 1, tall);
            context.fillStyle = colour(bar.kind);
          }
        }
      }
    }
    context.fillStyle = colour("now");
    context.fillRect(x_of(now) - 1, TOP - 4, 2, height);
    const unplaced = [...board.jobs.values()].filter((job) => board.waits(job) && !board.of(job, "nodes")?.length).length;
    const parts = [`${counted(running, "job")} running`, `${counted(planned, "waiting job")} with planned nodes`];
    if (unplaced) parts.push(`${counted(unplaced, "waiting job")} whose nodes are not decided yet (their times are in the table)`);
    this.text.textContent = `${parts.join(", ")}. The red line is now.`;
  }

  _bar(row, from, to, kind, end) {
    const nodes = this.board.of(row, "nodes");
    if (nodes?.length && from !== null && to > this.begin && from < end) this.bars.push({ row, from, to: Math.min(to, end), kind, nodes });
  }

  _axis(context, width, height, colour, x_of, now, ahead) {
    const step = (STEPS_H.find((hours) => hours * 3600 * this.scale > 70) ?? 168) * 3600;
    const shift = new Date(now * 1000).getTimezoneOffset() * 60;
    context.font = "11px system-ui, sans-serif";
    for (let time = Math.ceil((this.begin - shift) / step) * step + shift; time < now + ahead; time += step) {
      context.fillStyle = colour("line");
      context.fillRect(x_of(time), TOP - 4, 1, height);
      context.fillStyle = colour("soft");
      const at = new Date(time * 1000), day = at.getHours() === 0 && at.getMinutes() === 0;
      const label = day ? at.toLocaleDateString(undefined, { day: "numeric", month: "short" }) : at.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
      context.fillText(label, x_of(time) + 2, 12);
    }
  }

  bar_at(x, y) {
    const node = Math.floor((y - TOP) / this.row), time = this.begin + (x - LEFT) / this.scale;
    const inside = (bar) => bar.from <= time && time <= bar.to && bar.nodes.some(([first, last]) => first <= node && node <= last);
    return this.bars.findLast(inside);
  }

  words(x, y) {
    const bar = this.board && this.bar_at(x, y);
    if (!bar) return "";
    const board = this.board, job = bar.row, nodes = bar.nodes.reduce((sum, [first, last]) => sum + last - first + 1, 0);
    const start = board.of(job, "start_time"), finish = board.of(job, "finish_time"), walltime = board.of(job, "walltime");
    const lines = [`${board.id(job)} ${board.of(job, "name")}`, `${board.user(job)} ${board.of(job, "partition")}`, `${counted(nodes, "node")}`];
    lines.push(`${bar.kind === "planned" ? "is to start" : "started"} ${clock(start)}`);
    if (finish !== null) lines.push(`${bar.kind === "past" ? "ended" : "is expected to end"} ${clock(finish)}`);
    if (walltime !== null) lines.push(`time limit ${span(walltime)}`);
    return lines.filter((line) => line.trim()).join("\n");
  }
}
