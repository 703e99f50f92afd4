// Empties the page when its session has ended, so that the next person at this machine sees nothing of it.
(() => {
  const base = new URL(".", document.currentScript.src).pathname.replace(/login\/$/, "");
  const look = async () => {
    try {
      const answer = await fetch(base + "session", { cache: "no-store", redirect: "manual" });
      if (answer.status === 401) {
        document.documentElement.replaceChildren();
        location.replace(base + "login?next=" + encodeURIComponent(location.pathname + location.search));
      }
    } catch { /* the server is away: nothing to say */ }
  };
  setInterval(look, 5000);
  addEventListener("focus", look);
  addEventListener("pageshow", look);
  document.addEventListener("visibilitychange", look);
})();
