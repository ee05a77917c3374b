// The nodes now: a cell each, as full as it is used.

import { count as counted } from "./board.js";
import { colours, prepared, with_tip } from "./canvas.js";

const MEASURES = {
  load: (nodes, i) => nodes.threads[i] / nodes.cores[i],
  bandwidth: (nodes, i) => nodes.bandwidth[i] === null || !nodes.memory_bandwidth[i] ? null : nodes.bandwidth[i] / nodes.memory_bandwidth[i],
  power: (nodes, i, most) => nodes.power_watts[i] === null ? null : nodes.power_watts[i] / most,
};
const AWAY = { down: "down", drained: "drained", unknown: "down", asleep: "asleep" };

export class NodesPicture {
  constructor(canvas, text, key, open) {
    Object.assign(this, { canvas, text, key, measure: "load", cell: 0, across: 1, board: null });
    with_tip(canvas, (x, y) => this.words(this.node_at(x, y)), (x, y) => {
      const node = this.node_at(x, y);
      if (node !== null) open(this.board.nodes.name[node]);
    });
  }

  node_at(x, y) {
    const column = Math.floor((x - 4) / this.cell), row = Math.floor((y - 4) / this.cell);
    const node = row * this.across + column;
    return column >= 0 && column < this.across && node >= 0 && node < (this.board?.nodes.name.length ?? 0) ? node : null;
  }

  words(node) {
    if (node === null) return "";
    const nodes = this.board.nodes, lines = [`${nodes.name[node]}: ${nodes.state[node]}`];
    lines.push(`${nodes.threads[node]} of ${counted(nodes.cores[node], "core")} in use, ${counted(nodes.jobs[node], "job")}`);
    if (nodes.bandwidth[node] !== null) lines.push(`memory traffic ${(nodes.bandwidth[node] / 1e9).toFixed(1)} GB/s`);
    if (nodes.power_watts[node] !== null) lines.push(`power ${Math.round(nodes.power_watts[node])} W`);
    return lines.join("\n");
  }

  draw(board) {
    this.board = board;
    const nodes = board.nodes, count = nodes.name.length, colour = colours();
    const width = this.canvas.clientWidth - 8;
    this.cell = Math.max(4, Math.min(26, Math.floor(Math.sqrt((width * 260) / Math.max(1, count)))));
    this.across = Math.max(1, Math.floor(width / this.cell));
    const [context] = prepared(this.canvas, Math.ceil(count / this.across) * this.cell + 8);
    const gap = this.cell > 8 ? 2 : 1, size = this.cell - gap, measure = MEASURES[this.measure];
    const most = Math.max(1, ...nodes.power_watts.filter((watts) => watts !== null));
    const states = {};
    for (let node = 0; node < count; node++) {
      const x = 4 + (node % this.across) * this.cell, y = 4 + Math.floor(node / this.across) * this.cell;
      const state = nodes.state[node], share = measure(nodes, node, most);
      states[state] = (states[state] ?? 0) + 1;
      context.fillStyle = colour("low");
      context.fillRect(x, y, size, size);
      if (share === null) {
        context.strokeStyle = colour("soft");
        context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
      } else if (share > 0) {
        const full = Math.min(1, share) * size;
        context.fillStyle = colour("high");
        context.fillRect(x, y + size - full, size, full);
      }
      if (AWAY[state]) {
        context.fillStyle = colour(AWAY[state]);
        context.fillRect(x, y, size, Math.max(2, size / 4));
      }
    }
    const busy = nodes.threads.reduce((sum, threads) => sum + threads, 0), cores = nodes.cores.reduce((sum, each) => sum + each, 0);
    const watts = nodes.power_watts.every((each) => each !== null) ? nodes.power_watts.reduce((sum, each) => sum + each, 0) : null;
    const parts = [`${counted(count, "node")}: ${Object.entries(states).map(([state, number]) => `${number.toLocaleString()} ${state}`).join(", ")}`];
    parts.push(`${busy.toLocaleString()} of ${counted(cores, "core")} in use (${cores ? Math.round((100 * busy) / cores) : 0} %)`);
    if (watts !== null) parts.push(`${(watts / 1000).toFixed(1)} kW by the model`);
    this.text.textContent = parts.join("; ");
    this.key.replaceChildren(...Object.keys(AWAY).filter((state) => states[state]).map((state) => {
      const item = document.createElement("li"), mark = document.createElement("i");
      mark.style.background = colour(AWAY[state]);
      item.append(mark, state);
      return item;
    }));
  }
}
