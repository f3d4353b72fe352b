"use strict";
(() => {
  // Following a link to something inside a closed <details> opens the <details>.
  const reveal = () => {
    // Ids are ASCII, so nothing is decoded: an address with a lone % would raise an error.
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let at = target; at; at = at.parentElement) {
      if (at.tagName === "DETAILS" && !at.classList.contains("warned")) at.open = true;
    }
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();

  // For printing, open all <details>, except those behind a warning that the reader has not opened.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open]):not(.guarded)")];
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of closed) one.open = false;
  });

  const told = document.getElementById("copied");
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", async () => {
      const text = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(text.textContent);
        told.textContent = "Copied.";
      } catch {
        // Without permission to write to the clipboard, select the text, to be copied by hand.
        getSelection().selectAllChildren(text);
        told.textContent = "Selected: copy it with the keyboard.";
      }
    });
  }
})();
