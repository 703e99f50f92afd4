// What Streamlit leaves out: figures follow the colours of the system, and typed text is kept after a pause.
(() => {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => location.reload());
  const KEPT = ["Comment", "Reason", "Reason for the change"];
  const PAUSE = 1500;
  let timer = 0;
  document.addEventListener("input", ({ target }) => {
    clearTimeout(timer);
    if (!(target instanceof HTMLInputElement) || !KEPT.includes(target.getAttribute("aria-label"))) return;
    timer = setTimeout(() => {
      if (document.activeElement !== target) return;
      // Streamlit takes over what is typed at Enter; the cursor stays where it is.
      target.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", code: "Enter", keyCode: 13, bubbles: true }));
      target.dispatchEvent(new KeyboardEvent("keypress", { key: "Enter", code: "Enter", keyCode: 13, bubbles: true }));
    }, PAUSE);
  });
})();
