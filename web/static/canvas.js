// What both pictures share: a canvas as sharp as the screen, its colours, and the text below the pointer.

export function colours() {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`).trim();
}

// Return the context of a canvas of so many CSS pixels in height, in CSS pixels.
export function prepared(canvas, height) {
  const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, width];
}

const tip = document.getElementById("tip");

// Show what `text_at(x, y)` says below the pointer; `open_at(x, y)` is what a click does.
export function with_tip(canvas, text_at, open_at) {
  const place = (event) => [event.offsetX, event.offsetY];
  canvas.addEventListener("pointermove", (event) => {
    const text = text_at(...place(event));
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("click", (event) => { tip.hidden = true; open_at(...place(event)); });
}
