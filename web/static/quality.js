// How good the forecasts were, and the card: tables of words that the server makes.

import { clock } from "./board.js";

function element(name, text, kind = "") {
  const made = document.createElement(name);
  made.textContent = text;
  made.className = kind;
  return made;
}

function table_of({ title, columns, rows, text, time }) {
  const part = element("div", ""), table = document.createElement("table"), scroll = element("div", "", "scroll");
  table.className = "numbers";
  part.append(element("h3", time ? `${title}, ${clock(time)}` : title));
  if (rows.length) {
    const head = table.createTHead().insertRow(), body = table.createTBody();
    for (const [place, column] of columns.entries()) {
      head.append(Object.assign(element("th", column, place ? "num" : ""), { scope: "col" }));
    }
    for (const row of rows) {
      const line = body.insertRow();
      for (const [place, value] of row.entries()) {
        const cell = element(place ? "td" : "th", value, place ? "num" : "");
        if (place) cell.dataset.label = columns[place];
        if (!value) cell.dataset.empty = "";
        line.append(cell);
      }
    }
    scroll.append(table);
    part.append(scroll);
  }
  part.append(element("p", text));
  return part;
}

export async function show_quality(place) {
  let reply;
  try {
    reply = await (await fetch("/api/v1/quality")).json();
  } catch {
    return; // the page says already that it has lost its server
  }
  place.replaceChildren(...(reply.error ? [element("p", reply.error)] : reply.tables.map(table_of)));
}
