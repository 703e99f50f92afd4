// Says when the database is away; acts wait for it. Empties the page when its session has ended, so that the next person at this machine sees nothing of it.
(() => {
  const base = new URL(".", document.currentScript.src).pathname.replace(/login\/$/, "");
  const banner = document.createElement("div");
  banner.setAttribute("role", "alert");
  banner.textContent = "The database is not reachable; what you typed is kept. Leave this page open.";
  banner.style.cssText =
    "position:fixed;inset:0 0 auto 0;z-index:1000000;padding:.6rem 1rem;text-align:center;background:#7a2e0e;color:#fff";
  const look = async () => {
    try {
      const answer = await fetch(base + "session", { cache: "no-store", redirect: "manual" });
      if (answer.status === 503) document.body.append(banner);
      else banner.remove();
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
