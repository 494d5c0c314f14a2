// Fetches the parts of the page that change, every few seconds while somebody looks.
"use strict";
(() => {
  const status = document.getElementById("status"), parts = [...document.querySelectorAll("[data-from]")];
  if (!status) return;
  const every = 1000 * Number(status.dataset.every), shown = new Map();
  let timer = 0, busy = false;

  const say = (text, kind) => { status.textContent = text; status.className = "small " + kind; };
  const replace = async (part, text) => {
    const next = document.createElement("div");
    next.innerHTML = text;
    // pictures first, so that nothing flickers or jumps
    await Promise.allSettled([...next.querySelectorAll("img")].map((image) => image.decode()));
    const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    part.replaceChildren(...next.childNodes);
    const link = [...part.querySelectorAll("a")].find((each) => each.getAttribute("href") === focused);
    if (link) link.focus({ preventScroll: true });
  };
  const look = async () => {
    if (busy || document.hidden) return;
    busy = true;
    try {
      for (const part of parts) {
        const answer = await fetch(part.dataset.from, { cache: "no-store", signal: AbortSignal.timeout(30000) });
        if (answer.status === 401) { location.assign("login"); return; }
        if (!answer.ok) throw new Error(answer.status);
        const text = await answer.text();
        if (shown.get(part) !== text) { await replace(part, text); shown.set(part, text); }
      }
      say("Refreshed every " + every / 1000 + " s, last at " + new Date().toLocaleTimeString() + ".", "soft");
    } catch {
      say("Connection lost: these numbers are old. Trying again every " + every / 1000 + " s.", "note");
    } finally { busy = false; }
  };
  const start = () => { clearInterval(timer); timer = setInterval(look, every); };
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { look(); start(); } });
  start();
})();
