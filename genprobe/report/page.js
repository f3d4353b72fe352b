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

  // A figure leads to the replies that it counts or leaves out, and they lead back to it.
  const back = document.getElementById("replies-back");
  for (const table of back ? document.querySelectorAll("table[data-link]") : []) {
    const keys = table.dataset.keys.split(" ");
    const heads = [...table.tHead.rows[0].cells].slice(keys.length);
    let first = null;
    for (const row of table.tBodies[0].rows) {
      const names = [...row.cells].filter((cell) => cell.tagName === "TH");
      if (names.length === keys.length) first = names[0];
      else names.unshift(first);
      const query = new URLSearchParams(table.dataset.link);
      names.forEach((cell, at) => {
        if (at === 0 && row.classList.contains("whole") && keys[0] !== "run") return;
        const code = cell.querySelector(".code")?.textContent;
        const name = cell.querySelector(".name");
        query.set(keys[at], code ?? name.dataset.v ?? name.textContent);
      });
      [...row.cells].slice(row.cells.length - heads.length).forEach((cell, at) => {
        const count = cell.querySelector("small span:last-child");
        if (!count) return;
        const all = new URLSearchParams(query);
        for (const [key, value] of new URLSearchParams(heads[at].dataset.at ?? "")) all.set(key, value);
        const link = document.createElement("a");
        link.href = `#replies?${all}`;
        link.title = back.dataset.title;
        link.append(...count.childNodes);
        link.addEventListener("click", () => {
          document.getElementById("from")?.removeAttribute("id");
          link.id = "from";
          back.hidden = false;
        });
        count.append(link);
      });
    }
  }
  back?.addEventListener("click", () => {
    location.hash = "from";
    document.getElementById("from").focus();
  });

  // What a measure is, on hover: said once in the page.
  for (const link of document.querySelectorAll("th a[href^='#m-']")) {
    const told = document.getElementById(link.hash.slice(1));
    if (told) link.title = (told.querySelector("dd, summary span") ?? told).textContent.replace(/; $/, "");
  }

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
        told.textContent = told.dataset.copied ?? "Copied.";
      } catch {
        // Without permission to write to the clipboard, select the text, to be copied by hand.
        getSelection().selectAllChildren(text);
        told.textContent = told.dataset.selected ?? "Selected: copy it with the keyboard.";
      }
    });
  }
})();
