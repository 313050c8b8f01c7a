"use strict";
(() => {
	const data = JSON.parse(document.getElementById("data").textContent);
	const total = data.cell.length;
	const ROWS = 300; // of a check that are drawn at once
	const FEW = 40; // results that are shown opened
	const RED = ["FAIL", "XPASS", "ERROR"];
	const form = document.getElementById("filters");
	const tree = document.getElementById("tree");
	const due = new Set(data.due);
	const flaky = new Set(data.flaky);
	const opened = new Set();
	const PORT = 0, VARIANT = 2, STUB = 3, OS = 4, RUNNER = 5, COMMAND = 6;

	const family = (requirement) => requirement.split("-")[0];
	const size = (bytes) => (bytes && bytes % 1024 === 0 ? bytes / 1024 + "K" : String(bytes));
	const verdict = (row) => data.verdicts[data.verdict[row]];
	const message = (row) => (row in data.message ? data.messages[data.message[row]] : "");
	const element = (name, text, kind) => {
		const made = document.createElement(name);
		if (text !== undefined) made.textContent = text;
		if (kind) made.className = kind;
		return made;
	};
	const say = (text) => {
		document.getElementById("said").textContent = text;
	};

	// ---- Filters ----

	const distinct = (values) => [...new Set(values)];
	const choices = {
		port: distinct(data.cells.map((cell) => cell[PORT])).sort(),
		family: distinct(data.checks.map((check) => family(check[1]))).sort(),
		verdict: data.verdicts.slice().sort(),
		runner: distinct(data.cells.map((cell) => cell[RUNNER])).sort(),
		variant: distinct(data.cells.map((cell) => cell[VARIANT])).sort(),
		stub: distinct(data.cells.map((cell) => cell[STUB])).sort((a, b) => a - b),
		os: distinct(data.cells.map((cell) => cell[OS])).sort((a, b) => a - b),
	};
	const named = { red: "red: failed, broke, passed unexpectedly", due: "required, and not shown", flaky: "flaky" };
	for (const [name, values] of Object.entries(choices)) {
		const select = form.elements[name];
		select.append(new Option("all", ""));
		if (name === "verdict") for (const [value, text] of Object.entries(named)) select.append(new Option(text, value));
		const shown = name === "stub" || name === "os" ? size : String;
		for (const value of values) select.append(new Option(value === 0 ? "none" : shown(value), value));
	}

	const wanted = () => Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));

	const cellFits = (filter, cell) =>
		(!filter.port || cell[PORT] === filter.port) &&
		(!filter.runner || cell[RUNNER] === filter.runner) &&
		(!filter.variant || cell[VARIANT] === filter.variant) &&
		(!filter.stub || String(cell[STUB]) === filter.stub) &&
		(!filter.os || String(cell[OS]) === filter.os);

	const rowFits = (filter, row) => {
		const kind = verdict(row);
		if (filter.verdict === "red") return RED.includes(kind);
		if (filter.verdict === "due") return due.has(row);
		if (filter.verdict === "flaky") return flaky.has(row);
		return !filter.verdict || kind === filter.verdict;
	};

	const select = (filter) => {
		const cells = data.cells.map((cell) => cellFits(filter, cell));
		const text = (filter.q || "").trim().toLowerCase();
		const has = (value) => value.toLowerCase().includes(text);
		const checks = data.checks.map(([check, requirement]) => !filter.family || family(requirement) === filter.family);
		const checkHas = data.checks.map(([check, requirement]) => has(check) || has(requirement));
		const pointHas = data.points.map(has);
		const messageHas = data.messages.map(has);
		const found = [];
		for (let row = 0; row < total; row++) {
			const check = data.check[row];
			if (!cells[data.cell[row]] || !checks[check] || !rowFits(filter, row)) continue;
			if (
				text && !checkHas[check] && !pointHas[data.point[row]] &&
				!(row in data.message && messageHas[data.message[row]]) &&
				!has(data.checks[check][0] + "." + data.points[data.point[row]])
			) continue;
			found.push(row);
		}
		return found;
	};

	// ---- The tree ----

	const LEVELS = [
		(row) => data.cells[data.cell[row]][PORT],
		(row) => family(data.checks[data.check[row]][1]),
		(row) => data.checks[data.check[row]][1],
		(row) => data.checks[data.check[row]][0],
	];

	const grouped = (rows, level) => {
		const groups = new Map();
		for (const row of rows) {
			const key = LEVELS[level](row);
			if (!groups.has(key)) groups.set(key, []);
			groups.get(key).push(row);
		}
		return new Map([...groups].sort(([a], [b]) => (a < b ? -1 : 1)));
	};

	const counts = (rows) => {
		const found = new Map();
		for (const row of rows) found.set(verdict(row), (found.get(verdict(row)) || 0) + 1);
		return [...found].sort(([a], [b]) => RED.includes(b) - RED.includes(a) || (a < b ? -1 : 1));
	};

	const COLUMNS = ["verdict", "point", "variant", "stub page", "OS page", "runner", "message", ""];

	const drawRow = (row) => {
		const line = element("tr");
		const cell = data.cells[data.cell[row]];
		const [check] = data.checks[data.check[row]];
		const point = data.points[data.point[row]];
		const kind = verdict(row);
		line.append(element("td", kind + (due.has(row) ? " (required)" : "") + (flaky.has(row) ? " (flaky)" : ""), "v-" + kind));
		const head = element("th", point);
		head.scope = "row";
		line.append(head, element("td", cell[VARIANT]), element("td", cell[STUB] ? size(cell[STUB]) : "none"));
		line.append(element("td", size(cell[OS])), element("td", cell[RUNNER]), element("td", message(row)));
		const last = element("td");
		if (row in data.block) {
			const link = element("a", "block");
			link.href = "#failure-" + data.block[row];
			last.append(link, " ");
		}
		if (cell[COMMAND].includes("CHECK.POINT")) {
			const button = element("button", "Copy rerun");
			button.type = "button";
			button.setAttribute("aria-label", "Copy the command that runs " + check + "." + point + " again");
			const only = point === "*" || point === "all" ? check : check + "." + point;
			button.dataset.text = cell[COMMAND].replace("CHECK.POINT", only);
			last.append(button);
		}
		line.append(last);
		return line;
	};

	const drawRows = (parent, rows) => {
		const scroll = element("div", undefined, "scroll");
		scroll.tabIndex = 0;
		scroll.setAttribute("role", "region");
		scroll.setAttribute("aria-label", "Results of " + LEVELS[3](rows[0]));
		const table = element("table");
		table.setAttribute("aria-label", LEVELS[3](rows[0]) + " on " + LEVELS[0](rows[0]));
		const head = element("tr");
		for (const name of COLUMNS) {
			const cell = element(name ? "th" : "td", name);
			if (name) cell.scope = "col";
			head.append(cell);
		}
		const top = element("thead");
		top.append(head);
		const body = element("tbody");
		table.append(top, body);
		scroll.append(table);
		parent.append(scroll);
		const worst = rows.slice().sort((a, b) => RED.includes(verdict(b)) - RED.includes(verdict(a)) || a - b);
		let drawn = 0;
		const more = element("button");
		more.type = "button";
		const next = () => {
			for (const row of worst.slice(drawn, drawn + ROWS)) body.append(drawRow(row));
			drawn = Math.min(drawn + ROWS, worst.length);
			more.textContent = "Show " + Math.min(ROWS, worst.length - drawn) + " of " + (worst.length - drawn) + " more";
			more.hidden = drawn === worst.length;
		};
		more.addEventListener("click", next);
		next();
		parent.append(more);
	};

	const drawLevel = (parent, rows, level, path, openAll) => {
		const groups = grouped(rows, level);
		for (const [name, inner] of groups) {
			const here = path + "/" + name;
			const details = element("details");
			const summary = element("summary");
			summary.append(element("strong", name), " ");
			for (const [kind, number] of counts(inner)) summary.append(element("span", number + " " + kind, "chip v-" + kind), " ");
			if (level === 2) {
				const [strength, text, source] = data.requirements[name] || ["", "", ""];
				if (text) summary.append(element("span", strength + ": " + text, "text"));
				summary.title = source ? "source: " + source : "";
			}
			details.append(summary);
			const inside = element("div");
			details.append(inside);
			const fill = () => {
				if (inside.hasChildNodes()) return;
				if (level + 1 < LEVELS.length) drawLevel(inside, inner, level + 1, here, openAll);
				else drawRows(inside, inner);
			};
			details.addEventListener("toggle", () => {
				if (details.open) {
					fill();
					opened.add(here);
				} else opened.delete(here);
			});
			if (openAll || opened.has(here) || (groups.size === 1 && rows.length < total)) {
				fill();
				details.open = true;
			}
			parent.append(details);
		}
	};

	// ---- What else a filter hides ----

	const hideOthers = (filter) => {
		const text = (filter.q || "").trim().toLowerCase();
		for (const one of document.querySelectorAll(".failure")) {
			const kind = one.dataset.verdict;
			one.hidden =
				Boolean(filter.port && one.dataset.port !== filter.port) ||
				Boolean(filter.family && one.dataset.family !== filter.family) ||
				Boolean(filter.verdict && filter.verdict !== kind && filter.verdict !== "red") ||
				Boolean(text && !one.dataset.text.includes(text) && !one.textContent.toLowerCase().includes(text));
		}
		for (const table of document.querySelectorAll(".matrix")) {
			const page = filter[table.dataset.size];
			for (const cell of table.querySelectorAll("[data-page]")) {
				cell.hidden =
					Boolean(filter.port && cell.dataset.port !== filter.port) || Boolean(page && cell.dataset.page !== page);
			}
			for (const row of table.querySelectorAll("tr[data-family]")) {
				row.hidden = Boolean(filter.family && row.dataset.family !== filter.family);
			}
		}
		for (const port of document.querySelectorAll(".port")) {
			port.hidden = Boolean(filter.port && port.dataset.port !== filter.port);
		}
		for (const picture of document.querySelectorAll(".picture")) {
			picture.hidden =
				Boolean(filter.variant && picture.dataset.variant !== filter.variant) ||
				Boolean(filter.stub && filter.stub !== "0" && picture.dataset.stub !== filter.stub);
		}
	};

	const draw = () => {
		const filter = wanted();
		const rows = select(filter);
		tree.replaceChildren();
		drawLevel(tree, rows, 0, "", rows.length <= FEW);
		document.getElementById("shown").textContent =
			rows.length === total ? "All " + total + " results." : rows.length + " of " + total + " results.";
		hideOthers(filter);
	};

	// ---- The filter in the address, so that a view can be sent ----

	let written = "";
	const fromAddress = () => {
		const text = location.hash.slice(1);
		if (!text.includes("=") || text === written) return;
		const asked = new URLSearchParams(text);
		form.reset();
		for (const [name, value] of asked) {
			const field = form.elements.namedItem(name);
			if (field) field.value = value;
		}
		written = text;
		draw();
		document.getElementById("results").scrollIntoView();
		document.getElementById("results").focus({ preventScroll: true });
	};
	const changed = () => {
		draw();
		written = new URLSearchParams(wanted()).toString();
		history.replaceState(null, "", written ? "#" + written : location.pathname + location.search);
	};
	let waiting = 0;
	form.elements.q.addEventListener("input", () => {
		clearTimeout(waiting);
		waiting = setTimeout(changed, 150);
	});
	form.addEventListener("change", changed);
	form.addEventListener("submit", (event) => {
		event.preventDefault();
		changed();
	});
	form.addEventListener("reset", () => setTimeout(changed, 0));
	window.addEventListener("hashchange", fromAddress);

	// ---- Links into what is closed or filtered away, copying, colours ----

	document.addEventListener("click", (event) => {
		const link = event.target.closest('a[href^="#failure-"]');
		if (link) {
			const block = document.querySelector(link.getAttribute("href"));
			block.hidden = false;
			block.open = true;
		}
		const button = event.target.closest("button[data-copy], button[data-text]");
		if (button) copy(button.dataset.text || document.getElementById(button.dataset.copy).textContent);
	});

	const copy = async (text) => {
		try {
			await navigator.clipboard.writeText(text);
			say("Copied.");
		} catch {
			const field = element("textarea", text);
			document.body.append(field);
			field.select();
			say(document.execCommand("copy") ? "Copied." : "Your browser does not let this page copy.");
			field.remove();
		}
	};

	const THEMES = { "": "as the system", light: "light", dark: "dark" };
	const theme = document.getElementById("theme");
	theme.addEventListener("click", () => {
		const names = Object.keys(THEMES);
		const next = names[(names.indexOf(document.documentElement.dataset.theme || "") + 1) % names.length];
		if (next) document.documentElement.dataset.theme = next;
		else delete document.documentElement.dataset.theme;
		theme.textContent = "Colours: " + THEMES[next];
	});

	draw();
	fromAddress();
	document.body.dataset.ready = "yes";
})();
