// The board in the browser: rows by job, and what a row says in words.

export class Board {
  constructor() {
    this.jobs = new Map();
    this.past = [];
    this.users = {};
    this.nodes = { name: [] };
    this.about = {};
    this.facts = [];
    this.at = {};
    this.offset = 0; // of the service's clock from this one, seconds
  }

  replace(all) {
    this.at = Object.fromEntries(all.columns.map((name, position) => [name, position]));
    this.jobs = new Map(all.jobs.map((row) => [row[0], row]));
    this.past = all.past;
    this.nodes = all.nodes;
    this._take(all);
  }

  change(part) {
    for (const key of part.gone) this.jobs.delete(key);
    for (const row of part.jobs) this.jobs.set(row[0], row);
    this.past = this.past.concat(part.past).slice(-20000);
    if (part.nodes) this.nodes = part.nodes;
    this._take(part);
  }

  _take(part) {
    this.about = part.about;
    this.facts = part.facts;
    Object.assign(this.users, part.users);
    this.offset = part.about.time - Date.now() / 1000;
  }

  get now() { return Date.now() / 1000 + this.offset; }

  of(row, column) { return row[this.at[column]]; }

  user(row) {
    const uid = this.of(row, "uid");
    return uid === null ? "" : (this.users[uid] ?? `uid ${uid}`).replace(/ \(uid \d+\)$/, "");
  }

  id(row) {
    const key = this.of(row, "key"), tasks = this.of(row, "tasks");
    return this.of(row, "decided_by") || this.of(row, "partition") ? key.replace(/^[^/]*\//, "") + (tasks > 1 ? `[${tasks}]` : "") : key;
  }

  waits(row) { return this.of(row, "state") === "pending"; }
}

// A number with its noun: 1 node, 2,000 nodes.
export function count(number, noun) {
  return `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
}

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

// A span of time in two units at most: 2 h 5 min.
export function span(seconds) {
  let left = Math.max(0, Math.round(seconds));
  if (left >= 600) left = Math.round(left / 60) * 60;
  const words = [];
  for (const [size, unit] of UNITS) {
    const count = Math.floor(left / size);
    if (count || (unit === "s" && !words.length)) {
      words.push(`${count} ${unit}`);
      left -= count * size;
    }
    if (words.length === 2 || (words.length && !count)) break;
  }
  return words.join(" ");
}

export function from_now(time, now) {
  if (time === null || time === undefined) return "";
  return time >= now ? `in ${span(time - now)}` : `${span(now - time)} ago`;
}

export function clock(time) {
  return new Date(time * 1000).toLocaleString(undefined, { dateStyle: "short", timeStyle: "short" });
}

// A list of facts, each a name, a text, and the times before it.
export function facts_list(list, facts, now) {
  list.replaceChildren(...facts.flatMap(([name, text, times]) => {
    const term = document.createElement("dt"), value = document.createElement("dd");
    term.textContent = name;
    const relative = times.length === 1 ? from_now(times[0], now) : "";
    value.textContent = [times.map(clock).join(" to "), relative, text].filter(Boolean).join(", ");
    return [term, value];
  }));
  return list;
}
