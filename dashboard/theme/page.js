// What Streamlit leaves out: nothing jumps while a page loads, figures follow the colours of the system, typed text is kept after a pause, a digit waits for its question, links are copied, `?` lists the keys, `/` searches.
(() => {
  // Where the dashboard is: Streamlit would first look for it below each page, which is not there.
  window.__streamlit = { BACKEND_BASE_URL: new URL("..", document.currentScript.src).href };
  // Streamlit draws a low bar for each part whose code is still loading: what stands below would jump when it comes.
  // Half a minute at most: code that never comes must not leave the page blank.
  // The column is as wide as the page and lines up with the logo, and a narrow header stands in rows, before the first words
  // arrive: the style of the frame comes with them, and takes effect a moment later.
  document.head.append(Object.assign(document.createElement("style"), { textContent: `
    :is([data-testid=stElementContainer],[data-testid=stLayoutWrapper]):has([data-testid=stSkeleton])~*{animation:await-code 30s step-end both}
    @media(max-width:900px){[data-testid=stColumn]:has([data-testid=stSkeleton])~*{animation:await-code 30s step-end both}}
    .st-key-save-bar{min-height:2.5rem}
    @keyframes await-code{from{visibility:hidden}to{visibility:visible}}
    .stMainBlockContainer.stMainBlockContainer{max-width:none;padding-inline:1.25rem}
    @media(max-width:800px){.st-key-header{gap:.5rem!important}.st-key-header>:first-child{flex:1 0 100%!important}}` }));
  const KEPT = ["Comment", "Reason", "Reason for the change"];
  const PAUSE = 1500;
  let timer = 0;
  // In a form, Enter would send it off.
  const isKept = (field) => field instanceof HTMLInputElement && KEPT.includes(field.getAttribute("aria-label")) &&
    !field.closest("[data-testid=stForm]");
  const keep = (field) => {
    if (document.activeElement !== field || !isKept(field)) return;
    // Streamlit takes over what is typed at Enter; the cursor stays where it is.
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", code: "Enter", keyCode: 13, bubbles: true }));
    field.dispatchEvent(new KeyboardEvent("keypress", { key: "Enter", code: "Enter", keyCode: 13, bubbles: true }));
  };
  document.addEventListener("input", ({ target }) => {
    clearTimeout(timer);
    if (isKept(target)) timer = setTimeout(keep, PAUSE, target);
  });
  const isIdle = () => document.querySelector("[data-testid=stApp][data-test-script-state=notRunning]");
  // Figures have their colours from the server. A page that is drawn again, as by Streamlit's key R, keeps what only the
  // browser holds: text in forms and notes, and where somebody has scrolled to.
  const redraw = (tries) => {
    if (tries && !isIdle()) setTimeout(redraw, 200, tries - 1);
    else ["keydown", "keyup"].forEach(type => document.body.dispatchEvent(
      new KeyboardEvent(type, { key: "r", code: "KeyR", keyCode: 82, bubbles: true })));
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    keep(document.activeElement);
    setTimeout(redraw, 300, 50);
  });
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return "Link copied";
    } catch { /* an address without TLS has no clipboard */ }
    const field = document.body.appendChild(Object.assign(document.createElement("textarea"), { value: text }));
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done ? "Link copied" : "The browser refused. Copy this: " + text;
  };
  const say = (words) => {
    const note = document.createElement("div");
    note.setAttribute("role", "status");
    note.textContent = words;
    note.style.cssText = "position:fixed;top:4.5rem;right:1.25rem;z-index:1000000;max-width:90vw;overflow-wrap:anywhere;" +
      "padding:.5rem .8rem;border-radius:4px;background:#0b6b6b;color:#fff;font:15px 'Source Sans',sans-serif";
    document.body.append(note);
    setTimeout(() => note.remove(), words.length > 20 ? 15000 : 2500);
  };
  const searchField = () => document.querySelector("[data-testid=stMain] input[aria-label^=Search]");
  const search = (tries) => {
    const field = searchField();
    if (field) { field.focus(); field.select(); } else if (tries) setTimeout(search, 100, tries - 1);
  };
  document.addEventListener("keydown", (event) => {
    // Streamlit's shortcuts take letters and digits only.
    const { key, target } = event;
    const types = target instanceof Element && target.closest("input, textarea, [contenteditable=true]");
    const list = document.querySelector(".st-key-page-keys button");
    if (key === "?" && !types && list) list.click();
    if (key !== "/" || types || event.ctrlKey || event.metaKey || event.altKey) return;
    // Without a field of its own a page leads to the worklist's; a case that is being judged is not left by a slip.
    const worklist = document.querySelector("a[href$='/worklist']");
    const judging = /\/(review|adjudication)\/?$/.test(location.pathname);
    if (!searchField() && (judging || !worklist)) return;
    event.preventDefault();
    if (!searchField()) worklist.click();
    search(80);
  });
  // The worklist's table comes with the row that the server has selected, and undoes a click of the 150 ms before, which the
  // browser holds back. So a click while the server works waits, and then selects the row that was clicked, if it is still there.
  const ROW = 30;
  const GRID = "[class*=st-key-grid-]";
  const HELD = ["pointerdown", "mousedown", "pointerup", "mouseup", "click"];
  const rowsOf = (grid) => [...(grid?.querySelectorAll("canvas tbody tr") ?? [])].map(row => row.textContent);
  let busyUntil = 0;
  let late = null;
  let isHeld = false;
  const isBusy = () => {
    // Between a press and the server's answer to it nothing is seen of either.
    if (isIdle()) return Date.now() < busyUntil;
    busyUntil = 0;
    return true;
  };
  const catchUp = (tries) => {
    const canvas = document.querySelector(GRID + " canvas");
    const row = rowsOf(canvas?.closest(GRID)).indexOf(late.words);
    if (isBusy() || (row < 0 && tries)) { setTimeout(catchUp, 40, isBusy() ? 20 : tries - 1); return; }
    if (row >= 0) {
      const { left, top } = canvas.getBoundingClientRect();
      const at = { bubbles: true, clientX: left + late.x, clientY: top + (row + 1.5) * ROW, pointerType: "mouse" };
      ["pointerdown", "pointerup"].forEach(type => canvas.dispatchEvent(new PointerEvent(type, at)));
      busyUntil = Date.now() + 400;
    }
    late = null;
  };
  HELD.forEach(type => window.addEventListener(type, (event) => {
    const { target, isTrusted, clientX, clientY } = event;
    if (!isTrusted || !(target instanceof Element)) return;
    if (type === "pointerdown") {
      const grid = target.closest(GRID);
      isHeld = grid !== null && event.pointerType === "mouse" && isBusy();
      if (isHeld) {
        const { left, top } = grid.querySelector("canvas").getBoundingClientRect();
        const isFirst = late === null;
        late = { words: rowsOf(grid)[Math.floor((clientY - top) / ROW) - 1], x: clientX - left };
        if (isFirst) setTimeout(catchUp, 40, 20);
      }
      if (grid || target.closest("button")) busyUntil = Date.now() + 400;
    }
    if (isHeld) { event.preventDefault(); event.stopImmediatePropagation(); }
  }, true));
  // D and S ask a question on the server, which digits answer: until it is drawn, a digit waits, so that it does not
  // reach an open panel, whose keys are digits too.
  const LONGEST = 30000;
  const endsWith = (buttons, key) => [...buttons].some(button => button.innerText.trim().endsWith(key.toUpperCase()));
  const question = () => document.querySelector("[class*=st-key-alert]:is([class*=-why],[class*=-until])");
  const waiting = [];
  let asked = 0;
  const answer = () => {
    if (!question()?.querySelector("button") && Date.now() - asked < LONGEST) { setTimeout(answer, 50); return; }
    // Streamlit binds a key a moment after its button is drawn.
    setTimeout(() => {
      const buttons = question()?.querySelectorAll("button") ?? [];
      const digit = waiting.splice(0).find(key => endsWith(buttons, key));
      if (digit) ["keydown", "keyup"].forEach(type => document.body.dispatchEvent(
        new KeyboardEvent(type, { key: digit, code: "Digit" + digit, keyCode: digit.charCodeAt(0), bubbles: true })));
      asked = 0;
    }, 200);
  };
  window.addEventListener("keydown", (event) => {
    const { key, target, isTrusted } = event;
    if (!isTrusted || event.ctrlKey || event.metaKey || event.altKey) return;
    if (target instanceof Element && target.closest("input, textarea, [contenteditable=true]")) return;
    busyUntil = Date.now() + 400;
    if (/^[ds]$/i.test(key))
      asked = endsWith(document.querySelectorAll(".st-key-alert-triage button"), key) && !question() ? Date.now() : 0;
    else if (!/^[0-9]$/.test(key)) { asked = 0; waiting.length = 0; }
    else if (asked && (waiting.length || !question()) && Date.now() - asked < LONGEST) {
      event.preventDefault();
      event.stopImmediatePropagation();
      if (waiting.push(key) === 1) answer();
    } else asked = 0;
  }, true);
  // A browser prints a figure as it stands on the screen: one that is wider than the paper is made smaller.
  const PAPER = 660;
  const figures = () => document.querySelectorAll("[data-testid=stPlotlyChart] .js-plotly-plot");
  addEventListener("beforeprint", () => figures().forEach(figure => {
    // Square and tall, this one would leave no room for the other curve on the first page.
    const most = figure.closest("[class*=st-key-roc-]") ? 0.76 : 1;
    figure.style.zoom = Math.min(most, PAPER / figure.querySelector(".main-svg").clientWidth);
  }));
  addEventListener("afterprint", () => figures().forEach(figure => { figure.style.zoom = ""; }));
  document.addEventListener("click", async ({ target }) => {
    if (!(target instanceof Element) || !target.closest(".st-key-copy-link button")) return;
    const link = new URL(location.href);
    // The place in the list is the reader's, the list is everybody's.
    ["after", "page", "alert"].forEach(name => link.searchParams.delete(name));
    say(await copy(link.href));
  });
})();
