// Before anything is painted: the theme that the reader chose last time.
try {
  const kept = localStorage.getItem("mnemoscope-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch { /* a browser that keeps nothing follows the system */ }
