// Fetches the part of the page that changes, every few seconds while somebody looks.
"use strict";
(() => {
  const part = document.getElementById("live"), status = document.getElementById("status");
  if (!part) return;
  const every = 1000 * Number(status.dataset.every);
  let last = null, timer = 0, busy = false, lost = false;

  const say = (text, kind) => {
    if (status.textContent !== text) status.textContent = text;
    status.className = "small " + kind;
  };
  const replace = (text) => {
    // what is focused and unfolded stays so
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const href = focused && focused.getAttribute("href");
    const old = new Map([...part.querySelectorAll("img")].map((image) => [image.alt, image.height]));
    part.innerHTML = text;
    for (const image of part.querySelectorAll("img")) {
      // no jump while a picture loads
      const height = old.get(image.alt);
      if (height) { image.height = height; image.onload = () => image.removeAttribute("height"); }
    }
    if (href) for (const link of part.querySelectorAll("a")) if (link.getAttribute("href") === href) { link.focus({ preventScroll: true }); break; }
  };
  const look = async () => {
    if (busy || document.hidden) return;
    busy = true;
    try {
      const stop = new AbortController(), limit = setTimeout(() => stop.abort(), 30000);
      const answer = await fetch(part.dataset.from, { credentials: "same-origin", cache: "no-store", signal: stop.signal });
      clearTimeout(limit);
      if (answer.status === 401) { location.assign("login"); return; }
      if (!answer.ok) throw new Error(answer.status);
      const text = await answer.text();
      if (last !== null ? text !== last : true) { replace(text); last = text; }
      lost = false;
      say("Refreshed every " + every / 1000 + " s, last at " + new Date().toLocaleTimeString() + ".", "soft");
    } catch {
      if (!lost) say("Connection lost: these numbers are old. Trying again every " + every / 1000 + " s.", "note");
      lost = true;
    } finally { busy = false; }
  };
  const start = () => {
    clearInterval(timer);
    if (!document.hidden) { look(); timer = setInterval(look, every); }
  };
  document.addEventListener("visibilitychange", start);
  timer = setInterval(look, every);
})();
