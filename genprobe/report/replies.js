// The browser of replies. All text of models and files is put into the page only as text.
(() => {
  "use strict";

  const section = document.getElementById("replies");
  if (!section) return;
  const part = (name) => document.getElementById(`replies-${name}`);

  const PAGE = 20; // replies per page
  const CUT = "This page holds the first {n} of its {all} letters; `genprobe score RUN --export FILE.csv` writes it whole.";
  const PREVIEW = 600; // characters (and LINES: lines) of a text that are shown at first
  const LINES = 14;
  const FARTHEST = 3000; // evidence or a hit that ends before this is shown at first, too
  const FIRST = ["run", "lang", "probe", "decode", "answer", "sentiment", "side"]; // filters that are always visible

  // --- the data

  // A column: its distinct values, their labels, and the code of every row.
  function column(found, n) {
    const { values, labels = values, codes } = found;
    const Codes = values.length < 256 ? Uint8Array : values.length < 65536 ? Uint16Array : Uint32Array;
    return { values, labels, codes: codes ? Codes.from(codes) : new Codes(n) };
  }

  async function unpack() {
    const binary = atob(part("data").textContent);
    const bytes = new Uint8Array(binary.length);
    for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const data = JSON.parse(await new Response(stream).text());
    const columns = new Map();
    for (const [name, found] of Object.entries(data.columns)) columns.set(name, column(found, data.n));
    return {
      ...data,
      columns,
      languages: new Map(data.languages.map(([code, name, dir]) => [code, { name, dir }])),
      cut: new Map(data.cut),
      cutThought: new Map(data.cut_thought),
    };
  }

  // --- text

  // Normalise as genprobe.text does: compatibility forms, no invisible characters, case folded.
  const ASCII = /^[\x00-\x7f]*$/;
  const INVISIBLE =
    /[\u00ad\u061c\u0640\u064b-\u0652\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe0f\ufeff\ufffd]/g;
  function fold(text) {
    if (ASCII.test(text)) return text.toLowerCase();
    const folded = text
      .replace(/´/g, "'")
      .normalize("NFKC")
      .replace(INVISIBLE, "")
      .replace(/[’‘ʼʻ]/g, "'")
      .toLowerCase()
      .replace(/ß/g, "ss")
      .replace(/ς/g, "σ");
    return folded.normalize("NFKC");
  }

  // Find a folded query in a text: [from, to] of each hit, in whole letters with their marks.
  function hits(text, query) {
    if (!query) return [];
    const from = [];
    const to = [];
    let folded = "";
    for (const { 0: letter, index } of text.matchAll(/[^\p{M}]?\p{M}*/gsu)) {
      const piece = fold(letter);
      for (let at = 0; at < piece.length; at++) {
        from.push(index);
        to.push(index + letter.length);
      }
      folded += piece;
    }
    const found = [];
    for (let at = folded.indexOf(query); at >= 0; at = folded.indexOf(query, at + query.length)) {
      found.push([from[at], to[at + query.length - 1]]);
    }
    return found;
  }

  // Characters that move, hide or reorder text, and halves of surrogate pairs, as in
  // genprobe.text.display. Joiners are not among them, since Persian and Indic scripts need them.
  const UNSEEN =
    /(?!\r?\n|\t)[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
  const code = (char) => `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  // For places that can contain only text: options and names.
  const plain = (text) => String(text).replace(UNSEEN, (char) => `[${code(char)}]`);

  function element(tag, name, ...children) {
    const made = document.createElement(tag);
    if (name) made.className = name;
    made.append(...children);
    return made;
  }

  // Append a text to a parent, with its invisible characters as visible marks.
  function append(parent, text) {
    let done = 0;
    for (const { 0: char, index } of text.matchAll(UNSEEN)) {
      if (index > done) parent.append(text.slice(done, index));
      const sign = element("span", "r-char", code(char));
      sign.dir = "ltr";
      parent.append(sign);
      done = index + char.length;
    }
    parent.append(text.slice(done));
  }

  // Append a text from its first letter to `end`, with ranges marked. ranges: [from, to, name].
  function marked(parent, text, end, ranges) {
    const begin = Math.min(text.length - text.trimStart().length, end);
    const inside = (at) => Math.min(Math.max(at, begin), end);
    const edges = [begin, end, ...ranges.flatMap(([from, to]) => [inside(from), inside(to)])];
    const cuts = [...new Set(edges)].sort((a, b) => a - b);
    // Go through cuts and ranges together, as a search for one letter may have 20,000 hits.
    const coming = [...ranges].sort((a, b) => a[0] - b[0]);
    let [next, open] = [0, []];
    for (let at = 0; at + 1 < cuts.length; at++) {
      const [from, to] = [cuts[at], cuts[at + 1]];
      while (next < coming.length && coming[next][0] <= from) open.push(coming[next++]);
      open = open.filter((range) => to <= range[1]);
      const names = open.map((range) => range[2]);
      const piece = names.length ? element("mark", names.join(" ")) : parent;
      append(piece, text.slice(from, to));
      if (piece !== parent) parent.append(piece);
    }
  }

  // Find where a text can be cut: not before a combining mark, not inside a surrogate pair.
  function cutAt(text, end) {
    while (end < text.length && /^[\p{M}\u200d\udc00-\udfff]/u.test(text.slice(end, end + 2))) end++;
    if (/[\ud800-\udbff]/.test(text[end - 1] ?? "") && /[\udc00-\udfff]/.test(text[end] ?? "")) end++;
    return end;
  }

  function preview(text, ranges) {
    let end = Math.min(PREVIEW, text.length);
    for (let at = -1, line = 0; line < LINES; line++) {
      at = text.indexOf("\n", at + 1);
      if (at < 0) break;
      if (line === LINES - 1) end = Math.min(end, at);
    }
    // Include the evidence and the first hit.
    for (const [, to] of ranges.slice(0, 2)) if (to < FARTHEST) end = Math.max(end, to + 60);
    end = cutAt(text, end);
    return end + 80 >= text.length && end >= PREVIEW ? text.length : Math.min(end, text.length);
  }

  const number = (n) => n.toLocaleString("en");

  // The page's own words in the reader's language (English text -> text), with their {slots} filled.
  let words = {};
  const say = (text, slots = {}) => (words[text] ?? text).replace(/{(\w+)}/g, (_, name) => slots[name]);

  // --- the view

  function start(data) {
    const { n, columns, languages, redact } = data;
    words = data.words ?? {};
    const col = (name) => columns.get(name);
    const at = (name, row) => {
      const found = col(name);
      return found ? found.values[found.codes[row]] : null;
    };
    const label = (name, row) => {
      const found = col(name);
      return found ? found.labels[found.codes[row]] ?? found.values[found.codes[row]] : null;
    };
    const planned = col("came").values.includes("no");

    const facets = data.facets.map(([name, title]) => ({ name, title, ...col(name), chosen: -1 }));
    for (const facet of facets) facet.counts = new Uint32Array(facet.values.length);

    // Folded texts for the search, each distinct text once: [column, folded values].
    const inside = redact ? ["item"] : ["text", "reply", "thought"].filter((name) => columns.has(name));
    const searched = inside.map((name) => [
      col(name),
      col(name).values.map((text) => fold(text ?? "")),
    ]);

    let order = Uint32Array.from({ length: n }, (_, row) => row);
    let query = ""; // folded
    let matched = null; // whether each row contains the query; null without a query
    let shown = order;
    let found = 0;
    let page = 0;

    // --- orders

    const length = (row) => at("reply", row)?.length ?? -1;
    const whole = (row) => data.cut.get(col("reply").codes[row]) ?? length(row);
    const side = ["lang", "text", "probe", "decode", "sample", "run"].filter((name) => columns.has(name));
    const orders = [["", say("As asked"), null]];
    if (!redact) {
      orders.push(["statement", say("By statement: models side by side"), (a, b) => {
        for (const name of side) {
          const { codes } = col(name);
          if (codes[a] !== codes[b]) return codes[a] - codes[b];
        }
        return a - b;
      }]);
      orders.push(["longest", say("Longest reply first"), (a, b) => whole(b) - whole(a) || a - b]);
      orders.push(["shortest", say("Shortest reply first"), (a, b) => whole(a) - whole(b) || a - b]);
    }
    for (const [title, values] of data.numbers) {
      orders.push([title, say("Highest {what} first", { what: title }), (a, b) => (values[b] ?? -1) - (values[a] ?? -1) || a - b]);
    }
    let sort = "";
    const sorted = new Map([["", order]]);
    function setOrder(name) {
      const known = orders.find(([key]) => key === name) ?? orders[0];
      sort = known[0];
      if (!sorted.has(sort)) sorted.set(sort, order.slice().sort(known[2]));
      shown = sorted.get(sort);
    }

    // --- which rows

    function search(text) {
      const next = fold(text.trim());
      if (next === query) return;
      query = next;
      matched = null;
      if (!query) return;
      matched = new Uint8Array(n);
      for (const [{ codes }, folded] of searched) {
        const has = Uint8Array.from(folded, (value) => (value.includes(query) ? 1 : 0));
        for (let row = 0; row < n; row++) matched[row] |= has[codes[row]];
      }
    }

    // Find the rows that pass all filters; count for each value of a facet the rows it would give.
    let result = new Uint32Array(n);
    function select() {
      found = 0;
      const active = facets.filter((facet) => facet.chosen >= 0);
      for (const facet of facets) facet.counts.fill(0);
      for (let k = 0; k < n; k++) {
        const row = shown[k];
        if (matched && !matched[row]) continue;
        let failed = null;
        let twice = false;
        for (const facet of active) {
          if (facet.codes[row] === facet.chosen) continue;
          twice = failed !== null;
          failed = facet;
          if (twice) break;
        }
        if (twice) continue;
        if (failed) {
          failed.counts[failed.codes[row]]++;
          continue;
        }
        result[found++] = row;
        for (const facet of facets) facet.counts[facet.codes[row]]++;
      }
    }

    // --- cards

    // evidence: its [from, to], or empty. whole: do not cut the text.
    function textBlock(text, lang, { evidence = [], whole = false } = {}) {
      const block = element("div", "r-text");
      block.lang = lang.code;
      block.dir = lang.dir;
      const ranges = (to) => [
        ...evidence.map(([from, end]) => [from, end, "r-evidence"]),
        ...hits(text.slice(0, to), query).map(([from, end]) => [from, end, "r-hit"]),
      ];
      const end = whole ? text.length : preview(text, ranges(FARTHEST));
      const show = (to) => {
        block.textContent = "";
        marked(block, text, to, ranges(to));
        if (to < text.length) block.append("…");
      };
      show(end);
      if (end === text.length) return [block];
      const button = element("button", "r-more", say("Show all {n} letters", { n: number(text.length) }));
      button.type = "button";
      button.setAttribute("aria-expanded", "false");
      let open = false;
      button.addEventListener("click", () => {
        open = !open;
        show(open ? text.length : end);
        button.textContent = open ? say("Show less") : say("Show all {n} letters", { n: number(text.length) });
        button.setAttribute("aria-expanded", String(open));
      });
      return [block, button];
    }

    function asked(row) {
      const tag = at("lang", row);
      return { code: tag ?? "", dir: languages.get(tag)?.dir ?? "auto" };
    }

    // A reply may be in another language than the question.
    function replied(row) {
      const tag = at("reply_language", row);
      if (!tag || tag === "und" || tag === "mixed") return { code: at("lang", row) ?? "", dir: "auto" };
      return { code: tag, dir: languages.get(tag)?.dir ?? "auto" };
    }

    function field(title, ...children) {
      return element("div", "r-part", element("h5", "", title), ...children);
    }

    function fact(list, title, value, tone) {
      if (value === null || value === undefined || value === "") return;
      const words = element("bdi", "");
      append(words, String(value));
      list.append(element("div", tone ?? "", element("dt", "", say(title)), element("dd", "", words)));
    }

    function prompt(row) {
      const [before, after] = at("around", row);
      const text = after === undefined ? before : before + (at("text", row) ?? "") + after;
      const details = element("details", "guarded", element("summary", "", say("Prompt")));
      details.addEventListener("toggle", () => {
        if (details.childElementCount === 1) {
          details.append(...textBlock(text, asked(row), { whole: true }));
        }
      });
      return details;
    }

    function reply(row) {
      const text = at("reply", row);
      if (text === null) {
        const why = at("came", row) === "yes"
          ? "None: the probabilities of the answer words were asked for."
          : "There is none.";
        return field(say("Reply"), element("p", "r-note", say(why)));
      }
      const [from, to] = at("place", row);
      const evidence = to > from && to <= text.length ? [[from, to]] : [];
      const echo = at("echo", row) === "exact";
      if (!text.trim()) {
        return field(say("Reply"), element("p", "r-note", say(echo ? "It only repeats the prompt." : "It is empty.")));
      }
      const block = field(say("Reply"), ...textBlock(text, replied(row), { evidence }));
      if (echo) block.append(element("p", "r-note", say("It repeats the prompt first, which is left out here.")));
      const full = data.cut.get(col("reply").codes[row]);
      if (full) {
        block.append(element("p", "r-note",
          say(CUT, { n: number([...text].length), all: number(full) })));
      }
      return block;
    }

    // The thought before the reply: closed, unless it contains the query.
    function thought(row) {
      const text = at("thought", row);
      if (!text) return [];
      const details = element("details", "guarded", element("summary", "", say("Thought ({n} letters)", { n: number(text.length) })));
      const fill = () => {
        if (details.childElementCount > 1) return;
        details.append(...textBlock(text, { code: "", dir: "auto" }));
        const full = data.cutThought.get(col("thought").codes[row]);
        if (full) {
          details.append(element("p", "r-note",
            say(CUT, { n: number([...text].length), all: number(full) })));
        }
      };
      details.addEventListener("toggle", fill);
      if (query && fold(text).includes(query)) {
        fill();
        details.open = true;
      }
      return [details];
    }

    function card(row, position) {
      const head = element("h4", "");
      const name = ["run", "lang", "probe", "decode"].filter((key) => at(key, row) !== null && (key !== "decode" || col(key).values.length > 1));
      name.forEach((key, k) => {
        const words = element("bdi", k ? "" : "r-run");
        append(words, label(key, row));
        head.append(...(k ? [" · ", words] : [words]));
      });
      head.id = `replies-card-${position}`;

      const labels = element("p", "r-labels");
      for (const key of ["answer", "sentiment", "side"]) {
        const value = label(key, row);
        if (value === null) continue;
        const chip = element("bdi", "r-label");
        append(chip, value);
        labels.append(chip);
      }
      if (at("came", row) === "no") labels.append(element("span", "r-label r-none", say("no reply")));
      if (at("conflict", row) === "yes") labels.append(element("span", "r-label r-care", say("conflict")));
      if (at("refused", row) === "yes") labels.append(element("span", "r-label r-care", say("refused")));
      if (at("usable", row) === "no") labels.append(element("span", "r-label r-none", say("not usable")));

      const facts = element("dl", "r-facts");
      fact(facts, "Rule", at("rule", row));
      fact(facts, "Kind", label("kind", row));
      const end = redact ? 0 : at("place", row)[1];
      if (!end || end > Math.min(length(row), FARTHEST)) fact(facts, "Rests on", at("evidence", row));
      fact(facts, "Reply language", label("reply_language", row));
      fact(facts, "Left out of", label("left_out", row), "r-left");
      for (const [title, values] of data.numbers) fact(facts, title, values[row]?.toFixed(3));
      if (col("role")?.values.length > 1) fact(facts, "Statement", label("role", row));
      fact(facts, "Bias type", at("bias_type", row));
      fact(facts, redact ? "Item (hash)" : "Item", at("item", row));
      if (col("sample").values.length > 1) fact(facts, "Sample", at("sample", row));

      const article = element("article", "", element("header", "", head, labels));
      article.setAttribute("aria-labelledby", head.id);
      if (!redact) {
        const text = at("text", row) ?? "";
        const statement = field(say("Statement"), ...textBlock(text, asked(row)));
        statement.append(prompt(row));
        const said = reply(row);
        said.append(...thought(row));
        article.append(element("div", "r-pair", statement, said));
      }
      article.append(facts);
      return element("li", "", article);
    }

    // --- controls

    function option(value, text) {
      const made = element("option", "", text);
      made.value = value;
      return made;
    }

    for (const facet of facets) {
      facet.select = element("select", "");
      facet.select.id = `replies-by-${facet.name}`;
      facet.select.append(option("-1", ""));
      facet.values.forEach((value, k) => facet.select.append(option(String(k), "")));
      facet.select.addEventListener("change", () => {
        facet.chosen = Number(facet.select.value);
        update();
      });
      const title = element("label", "", say(facet.title));
      title.htmlFor = facet.select.id;
      const place = FIRST.includes(facet.name) ? "facets" : "rest";
      part(place).append(element("div", "r-field", title, facet.select));
    }
    const rest = facets.filter((facet) => !FIRST.includes(facet.name));
    part("more").hidden = !rest.length;
    for (const [key, title] of orders) part("sort").append(option(key, title));

    function put(node, text) {
      if (node.textContent !== text) node.textContent = text;
    }

    function showCounts() {
      for (const facet of facets) {
        const [all, ...choices] = facet.select.options;
        put(all, `${say("All")} (${number(facet.counts.reduce((sum, count) => sum + count, 0))})`);
        choices.forEach((choice, k) => {
          const value = facet.labels[k] ?? facet.values[k] ?? say(facet.name === "left_out" ? "nothing" : "none");
          put(choice, `${plain(value)} (${number(facet.counts[k])})`);
          choice.disabled = !facet.counts[k] && facet.chosen !== k;
        });
        facet.select.value = String(facet.chosen);
        facet.select.classList.toggle("r-on", facet.chosen >= 0);
      }
      const on = rest.filter((facet) => facet.chosen >= 0).length;
      put(part("more").firstElementChild, on ? say("More filters ({n} on)", { n: on }) : say("More filters"));
      const unit = `${planned ? "planned " : ""}${n === 1 ? "reply" : "replies"}`;
      put(part("count"), say(`{found} of {n} ${unit}`, { found: number(found), n: number(n) }));
      part("clear").disabled = !query && facets.every((facet) => facet.chosen < 0);
    }

    function showPage() {
      const pages = Math.max(1, Math.ceil(found / PAGE));
      page = Math.min(Math.max(page, 0), pages - 1);
      const from = page * PAGE;
      const to = Math.min(found, from + PAGE);
      put(part("range"), found ? say("{from} to {to}", { from: number(from + 1), to: number(to) }) : say("Nothing fits: take a filter away."));
      const cards = [];
      for (let k = from; k < to; k++) cards.push(card(result[k], k - from));
      part("list").replaceChildren(...cards);
      part("list").start = from + 1;
      part("page").value = String(page + 1);
      put(part("pages"), say("of {n}", { n: number(pages) }));
      part("pager").hidden = pages < 2;
      for (const name of ["first", "previous"]) part(name).disabled = page === 0;
      for (const name of ["next", "last"]) part(name).disabled = page === pages - 1;
    }

    function update({ stay = false } = {}) {
      if (!stay) page = 0;
      search(part("q").value);
      select();
      showCounts();
      showPage();
      remember();
    }

    // Show another page from its beginning.
    function turn(to) {
      const before = page;
      page = to;
      showPage();
      if (page === before) return;
      remember();
      part("range").focus({ preventScroll: true });
      part("range").scrollIntoView({ block: "start" });
    }

    // --- the view as a link: #replies?lang=ar&answer=yes&q=…&page=2

    function remember() {
      const state = new URLSearchParams();
      for (const facet of facets) {
        if (facet.chosen >= 0) state.set(facet.name, facet.values[facet.chosen] ?? "");
      }
      if (query) state.set("q", part("q").value.trim());
      if (sort) state.set("sort", sort);
      if (page) state.set("page", String(page + 1));
      const text = state.toString();
      const hash = text ? `#replies?${text}` : "#replies";
      if (location.hash === hash || (!text && !location.hash.startsWith("#replies?"))) return;
      try {
        history.replaceState(null, "", hash);
      } catch {
        // Some browsers do not let the script of a local file change its address; that is no error.
      }
    }

    function recall() {
      const state = new URLSearchParams(location.hash.slice("#replies?".length));
      for (const facet of facets) {
        const value = state.get(facet.name);
        facet.chosen = value === null ? -1 : facet.values.findIndex((known) => (known ?? "") === value);
        // A figure names the model alone where runs of several commands share its name.
        if (facet.name === "run" && value && facet.chosen < 0) {
          facet.chosen = facet.values.findIndex((known) => known.startsWith(`${value}, `));
        }
      }
      part("more").open ||= rest.some((facet) => facet.chosen >= 0);
      part("q").value = state.get("q") ?? "";
      setOrder(state.get("sort") ?? "");
      part("sort").value = sort;
      page = (Number.parseInt(state.get("page") ?? "1", 10) || 1) - 1;
      update({ stay: true });
    }

    part("form").addEventListener("submit", (event) => event.preventDefault());
    part("q").addEventListener("input", () => update());
    part("sort").addEventListener("change", () => {
      setOrder(part("sort").value);
      update();
    });
    part("clear").addEventListener("click", () => {
      for (const facet of facets) facet.chosen = -1;
      part("q").value = "";
      update();
      part("q").focus();
    });
    part("first").addEventListener("click", () => turn(0));
    part("previous").addEventListener("click", () => turn(page - 1));
    part("next").addEventListener("click", () => turn(page + 1));
    part("last").addEventListener("click", () => turn(Number.MAX_SAFE_INTEGER));
    part("page").addEventListener("change", () => {
      const wanted = Number.parseInt(part("page").value.replace(/\D/g, ""), 10);
      if (wanted) turn(wanted - 1);
      part("page").value = String(page + 1);
    });
    part("view").addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      if (event.target.closest("input, select")) return;
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      turn(page + step);
    });
    addEventListener("hashchange", () => {
      if (!location.hash.startsWith("#replies?")) return;
      recall();
      section.scrollIntoView();
    });

    if (location.hash.startsWith("#replies?")) {
      recall();
    } else {
      setOrder("");
      update();
    }
  }

  // --- the button that opens the browser

  const button = part("open");
  const tell = (what) => {
    part("message").textContent = part("message").dataset[what];
  };
  if (typeof DecompressionStream === "undefined") {
    tell("old");
    return;
  }
  button.hidden = false;
  const linked = () => {
    if (!location.hash.startsWith("#replies?") || part("gate").hidden) return;
    tell("linked");
    section.scrollIntoView();
  };
  linked();
  addEventListener("hashchange", linked);
  button.addEventListener("click", async () => {
    button.disabled = true;
    tell("unpacking");
    try {
      start(await unpack());
    } catch {
      button.disabled = false;
      tell("damaged");
      return;
    }
    part("gate").hidden = true;
    part("view").hidden = false;
    part("range").focus({ preventScroll: true });
  });
})();
