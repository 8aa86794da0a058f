/* Draws the page from the data in it. Texts of the program are only ever put in as text. d3 version 3. */
"use strict";
(function () {
	const data = JSON.parse(document.getElementById("data").textContent);
	const DOMAIN = { name: 0, device: 1, space: 2, peak: 3, live: 4, allocated: 5, parts: 6, free: 7, total: 8 };
	const LINE = { domain: 0, peak: 1, live: 2, untouched: 3, allocated: 4, blocks: 5, leak: 6, alive: 7, total: 8,
		survivors: 9, error: 10, flags: 11, place: 12, file: 13, number: 14, source: 15, ways: 16 };
	const FLAG = { import: 1, estimate: 2, device: 4, space: 8, once: 16 };
	const SITE = { domain: 0, peak: 1, live: 2, allocated: 3, flags: 4, process: 5, node: 6 };
	const FRAME = { place: 0, file: 1, line: 2, module: 3, flags: 4 };
	const ROWS = 200;
	const text = number => data.texts[number];
	const page = d3.select("#page");

	/* ---- words ---- */

	function bytes(value) {
		const units = ["B", "KiB", "MiB", "GiB", "TiB"];
		let unit = 0;
		while (value >= 1023.5 && unit < units.length - 1) {
			value /= 1024;
			unit++;
		}
		return (unit === 0 || value >= 99.95 ? Math.round(value) : value.toFixed(unit >= 3 && value < 9.995 ? 2 : 1)) + " " + units[unit];
	}
	const count = value => value.toString().replace(/\B(?=(\d{3})+$)/g, ",");
	function share(part, whole) {
		const percent = whole > 0 ? 100 * part / whole : 0;
		return (percent > 0 && percent < 0.1 ? "<0.1" : percent < 9.95 ? percent.toFixed(1).replace(".0", "") : Math.round(percent)) + " %";
	}
	function duration(ms) {
		return ms < 120000 ? (ms / 1000).toFixed(1) + " s" : ms < 7200000 ? (ms / 60000).toFixed(1) + " min" : (ms / 3600000).toFixed(1) + " h";
	}
	const domainName = line => data.domains[line[LINE.domain]][DOMAIN.name];

	/* Where devices held more than the host, they are looked at first. */
	const isPart = domain => /\/(tensors|registered|imported|graph)$/.test(domain[DOMAIN.name]); // it lies in memory of another one
	const peak = number => data.domains[number][DOMAIN.peak];
	const numbers = d3.range(data.domains.length);
	const devices = numbers.filter(number => data.domains[number][DOMAIN.device] && !isPart(data.domains[number]));
	const hosts = numbers.filter(number => !data.domains[number][DOMAIN.device] && !data.domains[number][DOMAIN.space]);
	const isMostlyDevice = d3.sum(devices, peak) > d3.sum(hosts, peak);

	/* ---- the top ---- */

	const first = data.processes[0];
	document.title = (first ? first.name : "kmemshim") + " - kmemshim";
	page.append("h1").text(first ? first.name + " (process " + first.pid + ")" : "kmemshim");
	page.append("p").attr("class", "soft").text("Recorded " + d3.time.format("%Y-%m-%d %H:%M:%S")(new Date(data.began_ms)) + ". Capture: " + data.capture);
	const verdict = page.append("div").attr("class", "verdict" + (data.verdict.has_ended_well ? "" : " died")).attr("id", "verdict");
	verdict.append("p").text(data.verdict.headline);
	if (data.verdict.next !== "")
		verdict.append("p").text("Next: " + data.verdict.next);
	if (data.verdict.bar.length !== 0) {
		const whole = d3.sum(data.verdict.bar, part => part[1]);
		const bar = verdict.append("div").attr("class", "bar").attr("role", "img").attr("aria-label", "Where the memory was");
		const names = verdict.append("p").attr("class", "soft").text(bytes(whole) + ": ");
		data.verdict.bar.forEach(part => {
			bar.append("span").attr("class", "part" + part[2]).attr("title", part[0]).style("width", 100 * part[1] / whole + "%");
			names.append("span").attr("class", "key part" + part[2]);
			names.append("span").text(" " + part[0] + " " + bytes(part[1]) + " (" + share(part[1], whole) + ") ");
		});
	}
	if (data.verdict.evidence !== "") {
		const rest = verdict.append("details").attr("open", window.innerHeight > 700 && window.innerWidth > 600 ? "" : null);
		rest.append("summary").text("Evidence");
		rest.append("p").text(data.verdict.evidence);
	}
	data.damages.forEach(damage => page.append("p").attr("class", "alarm").text("Damaged: " + damage));
	if (data.losses.some(loss => loss[2]))
		page.append("p").attr("class", "alarm").text("Not all was recorded: see Losses under Processes.");

	/* ---- tabs ---- */

	const tabs = [];
	const nav = page.append("nav").attr("role", "tablist").attr("aria-label", "Views");

	/* Also of a tab that is hidden, and is to be printed. */
	const room = () => Math.max(300, page.node().clientWidth - 2 * parseFloat(getComputedStyle(page.node()).paddingLeft));

	function addTab(name, draw) {
		const id = name.toLowerCase().replace(/[^a-z]+/g, "-");
		const section = page.append("section").attr("role", "tabpanel").attr("id", id).attr("aria-labelledby", "tab-" + id)
			.attr("hidden", "hidden");
		const tab = { id: id, section: section, isDrawn: false, draw: draw };
		section.append("h2").attr("class", "printed").text(name);
		tab.button = nav.append("button").attr("role", "tab").attr("id", "tab-" + id).attr("aria-controls", id).text(name)
			.on("click", () => show(tab));
		tab.button.on("keydown", () => {
			const step = { ArrowRight: 1, ArrowLeft: -1 }[d3.event.key];
			if (step !== undefined) {
				const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
				show(next);
				next.button.node().focus();
			}
		});
		tabs.push(tab);
		return tab;
	}

	/* The tab and its choices stand in the address: a link or a reload shows the same. */
	let shownTab = null;
	const controls = tab => Array.from(tab.section.node().querySelectorAll("select, input"));
	const isTick = control => control.type === "checkbox";
	function keepView() {
		const chosen = controls(shownTab).map(one => [one.name, isTick(one) ? Number(one.checked) : one.value]).filter(one => one[1]);
		const address = "#" + [shownTab.id].concat(chosen.map(one => one.map(encodeURIComponent).join("="))).join("&");
		try {
			history.replaceState(null, "", address);
		} catch (error) {
			// in a frame without an address of its own
		}
	}
	page.on("change.view", keepView).on("input.view", keepView);

	function showKept(otherwise) {
		const readable = part => {
			try {
				return decodeURIComponent(part);
			} catch (error) {
				return ""; // somebody else's fragment
			}
		};
		const parts = location.hash.slice(1).split("&").map(part => part.split("=").map(readable));
		const tab = tabs.find(one => one.id === parts[0][0]);
		const wanted = new Map(parts.slice(1));
		show(tab || otherwise);
		controls(shownTab).filter(one => tab && one.value !== undefined).forEach(one => {
			const value = wanted.get(one.name) || "";
			if (isTick(one) ? one.checked === (value !== "") : one.value === value || (value === "" && one.type !== "search"))
				return;
			one[isTick(one) ? "checked" : "value"] = isTick(one) ? value !== "" : value;
			one.dispatchEvent(new Event(one.type === "search" ? "input" : "change", { bubbles: true }));
		});
	}

	function show(tab) {
		shownTab = tab;
		tabs.forEach(other => {
			other.section.attr("hidden", other === tab ? null : "hidden");
			other.button.attr("aria-selected", String(other === tab)).attr("tabindex", other === tab ? 0 : -1);
		});
		if (!tab.isDrawn) {
			tab.isDrawn = true;
			tab.draw(tab.section);
		}
		keepView();
	}

	function choice(bar, label, name, options, act) {
		const select = bar.append("label").text(label + " ").append("select").attr("name", name).on("change", act);
		options.forEach(option => select.append("option").attr("value", option[0]).text(option[1]));
		return () => select.property("value");
	}

	function tick(bar, label, name, act) {
		const box = bar.append("label");
		const input = box.append("input").attr("type", "checkbox").attr("name", name).on("change", act);
		box.append("span").text(label);
		return () => input.property("checked");
	}

	/* ---- lines ---- */

	function putTrack(cell, part, whole) {
		cell.append("span").attr("class", "track").append("span").attr("class", "share").style("width", part !== 0 ? Math.max(1, 100 * part / whole) + "%" : 0);
	}

	let sourceTab = null;
	let chosenFile = null;
	let chosenLine = 0;
	const sources = new Map((data.sources || []).map(source => [source.file, source.lines]));

	/* It stands in its file, where that is here. */
	function sourceOf(line) {
		return line[LINE.source] >= 0 ? text(line[LINE.source]) : sources.get(line[LINE.file])[2 * line[LINE.number] - 1];
	}

	function openSource(line) {
		chosenFile = line[LINE.file];
		chosenLine = line[LINE.number];
		show(sourceTab);
		sourceTab.refresh();
	}

	function putPlace(cell, line) {
		if (sources.has(line[LINE.file]))
			cell.append("button").attr("class", "link").text(text(line[LINE.place])).attr("title", "show it in its file").on("click", () => openSource(line));
		else
			cell.append("span").text(text(line[LINE.place]));
		if (sourceOf(line) !== "")
			cell.append("span").attr("class", "source").text(sourceOf(line));
		putWays(cell, line[LINE.ways].filter(way => text(way[0]) !== "")); // at the latest look
	}

	/* The first in one line, as everywhere. It unfolds to its steps, from the root to the block, each in the one before; so do the others. */
	function putWays(cell, ways) {
		const words = way => "held " + text(way[0]);
		const fold = (parent, told) => parent.append("details").call(one => one.append("summary").text(told));
		if (ways.length === 0 || (ways.length === 1 && ways[0].length === 1)) {
			ways.forEach(way => cell.append("span").attr("class", "source").text(words(way)));
			return;
		}
		const all = fold(cell, words(ways[0])).attr("class", "source");
		ways.forEach((way, number) => {
			const last = way.length - 1;
			let at = number === 0 ? all : last === 0 ? all.append("p").text(words(way)) : fold(all, words(way));
			way.slice(1).forEach((step, index) => {
				at = index + 1 === last ? at.append("p").text("-> " + text(step)) : fold(at, (index === 0 ? "" : "-> ") + text(step));
			});
		});
	}

	function growth(line) {
		const leak = text(line[LINE.leak]);
		return leak !== "leak" ? leak : (line[LINE.flags] & FLAG.once) !== 0 ? "leak?" : "leak";
	}

	function putGrowth(cell, line) {
		const leak = growth(line);
		cell.append("span").attr("class", leak === "leak" ? "alarm" : null).text(leak);
		putSurvivors(cell, line);
	}

	/* A line that loads its data in rounds looks like one that leaks: which blocks are alive, the oldest generation first. */
	function putSurvivors(cell, line) {
		const cells = text(line[LINE.survivors]);
		const told = "blocks of " + line[LINE.alive] + " of " + line[LINE.total] + " generations (stretches of the run) are alive";
		if (cells.length < 2 || line[LINE.alive] === 0)
			return;
		const svg = cell.append("svg").attr("class", "survivors").attr("role", "img").attr("aria-label", told)
			.attr("viewBox", "0 0 " + 3 * cells.length + " 14").style("width", 3 * cells.length + "px").attr("height", 14);
		svg.append("title").text(told + ", the oldest on the left");
		svg.selectAll("rect").data(cells.split("").map(Number)).enter().append("rect").attr("x", (_, at) => 3 * at).attr("width", 2)
			.attr("y", alive => 12 - 4 * alive / 3).attr("height", alive => 2 + 4 * alive / 3).attr("class", alive => alive === 0 ? "none" : null);
	}

	const columns = [
		{ name: "Allocated at", value: line => text(line[LINE.place]), isText: true, put: putPlace },
		{ name: "Peak", value: line => line[LINE.peak], show: bytes },
		{ name: "Live", value: line => line[LINE.live], show: bytes },
		{ name: "Blocks", value: line => line[LINE.blocks], show: count },
		{ name: "Allocated", value: line => line[LINE.allocated], show: bytes },
		{ name: "Growth", value: growth, isText: true, put: putGrowth },
		{ name: "Domain", value: domainName, isText: true },
	];

	function drawLines(section) {
		let column = columns[1];
		let isUp = false;
		let shown = ROWS;
		const bar = section.append("div").attr("class", "bar");
		const filter = bar.append("label").text("Filter ").append("input").attr("type", "search").attr("name", "filter")
			.attr("placeholder", "a file, a function, a text").on("input", () => { shown = ROWS; draw(); });
		const withImports = tick(bar, "what imports left", "imports", draw);
		const status = section.append("p").attr("class", "status soft").attr("aria-live", "polite");
		const table = section.append("div").attr("class", "scroll").append("table");
		const heads = table.append("thead").append("tr").selectAll("th").data(columns).enter().append("th").attr("scope", "col")
			.attr("class", d => d.isText ? null : "number");
		heads.append("button").text(d => d.name).on("click", d => {
			isUp = column === d ? !isUp : Boolean(d.isText);
			column = d;
			draw();
		});
		const body = table.append("tbody");
		const more = section.append("button").text("Show more").on("click", () => { shown += 5 * ROWS; draw(); });
		const largest = d3.max(data.lines, line => line[LINE.peak]) || 1;

		function draw() {
			const wanted = filter.property("value").toLowerCase();
			const rows = data.lines.filter(line => (withImports() || (line[LINE.flags] & FLAG.import) === 0) &&
				(wanted === "" || (text(line[LINE.place]) + " " + sourceOf(line) + " " + domainName(line)).toLowerCase().includes(wanted)));
			rows.sort((a, b) => (isUp ? 1 : -1) * d3.ascending(column.value(a), column.value(b)));
			heads.attr("aria-sort", d => d !== column ? "none" : isUp ? "ascending" : "descending");
			status.text(count(rows.length) + " lines of code" + (rows.length > shown ? ", the first " + shown + " are shown" : ""));
			more.style("display", rows.length > shown ? null : "none");
			body.selectAll("tr").remove();
			const row = body.selectAll("tr").data(rows.slice(0, shown)).enter().append("tr");
			columns.forEach((one, index) => {
				const cells = row.append("td").attr("class", one.put === putPlace ? "place" : one.put ? "growth" : one.isText ? null : "number");
				if (one.put) {
					cells.each(function (line) { one.put(d3.select(this), line); });
				} else if (one.isText) {
					cells.text(one.value);
				} else {
					if (index === 1)
						cells.each(function (line) { putTrack(d3.select(this), line[LINE.peak], largest); });
					cells.append("span").attr("class", "figure")
						.text(line => ((line[LINE.flags] & FLAG.estimate) !== 0 && index < 3 ? "≈" : "") + one.show(one.value(line)));
				}
			});
		}
		draw();
	}

	/* ---- flame graph ---- */

	const metrics = [["peak", "live at the peak", site => site[SITE.peak]], ["live", "live at the end", site => site[SITE.live]],
		["leaked", "leaking at the end", site => (site[SITE.flags] & 2) !== 0 ? site[SITE.live] : 0],
		["allocated", "allocated in all", site => site[SITE.allocated]]];
	const kinds = [["user", "your own code", "var(--user)"], ["python", "Python libraries", "var(--python)"],
		["native", "native code", "var(--native)"]];

	function kindOf(frame) {
		return (data.frames[frame][FRAME.flags] & 1) !== 0 ? kinds[0] : (data.frames[frame][FRAME.flags] & 2) !== 0 ? kinds[1] : kinds[2];
	}

	/* Frames of a site that are wanted, outermost first. */
	function stackOf(site, layer) {
		const frames = [];
		for (let node = site[SITE.node]; node >= 0; node = data.nodes[2 * node]) {
			const frame = data.nodes[2 * node + 1];
			const isPython = (data.frames[frame][FRAME.flags] & 2) !== 0;
			if (layer === "mixed" || (layer === "python") === isPython)
				frames.push(frame);
		}
		return frames.reverse();
	}

	function buildTree(value, isWanted, layer, isInverted) {
		const root = { frame: -1, value: 0, small: 0, children: new Map(), parent: null };
		data.sites.forEach(site => {
			const amount = isWanted(site) ? value(site) : 0;
			if (amount === 0)
				return;
			const frames = stackOf(site, layer);
			let at = root;
			root.value += amount;
			if (site[SITE.node] < 0)
				root.small += amount;
			(isInverted ? frames.reverse() : frames).forEach(frame => {
				let next = at.children.get(frame);
				if (next === undefined) {
					next = { frame: frame, value: 0, children: new Map(), parent: at };
					at.children.set(frame, next);
				}
				next.value += amount;
				at = next;
			});
		});
		return root;
	}

	function drawFlame(section) {
		const ROW = 19;
		const WIDE = 40; // what has a name in it
		const DEEPER = 8;
		const NARROW = 3; // those below are one box: a step of a pixel for each frame of theirs tells nothing
		const TOGETHER = -2;
		const bar = section.append("div").attr("class", "bar");
		const domains = data.domains.map((domain, number) => [String(number), domain[DOMAIN.name]]);
		const metric = choice(bar, "Show", "metric", metrics, rebuild);
		const memory = choice(bar, "memory", "memory", [["host", "of the host"], ["devices", "of devices"]].concat(domains), rebuild);
		const layer = choice(bar, "frames", "frames", [["python", "Python"], ["mixed", "Python and native"], ["native", "native"]], rebuild);
		const process = data.processes.length > 1
			? choice(bar, "process", "process", [["all", "all"]].concat(data.processes.map((one, number) => [String(number), one.name + " " + one.pid])), rebuild)
			: () => "all";
		const isInverted = tick(bar, "begin at the allocating lines", "inverted", rebuild);
		const withImports = tick(bar, "imports", "imports", rebuild);
		const isUpwards = tick(bar, "upwards, as flames", "upwards", () => draw());
		const search = bar.append("label").text("Search ").append("input").attr("type", "search").attr("name", "search").on("input", () => draw());
		bar.append("button").text("Reset").on("click", () => { focus = root; draw(); });
		const legend = bar.append("span").attr("class", "legend");
		kinds.forEach(kind => {
			const item = legend.append("span");
			item.append("i").style("background", kind[2]);
			item.append("span").text(kind[1]);
		});
		const status = section.append("p").attr("class", "status mono").attr("aria-live", "polite");
		const svg = section.append("svg").attr("class", "flame").attr("role", "group").attr("aria-label", "Flame graph: width is memory");
		let root = null;
		let focus = null;
		let isCut = false;

		if (!data.frames.some(frame => (frame[FRAME.flags] & 2) !== 0))
			bar.select("select[name=frames]").property("value", "mixed");

		/* Tensors tell more than what they lie in. */
		if (isMostlyDevice) {
			const largest = devices.reduce((a, b) => peak(b) > peak(a) ? b : a);
			const tensors = numbers.find(number => data.domains[number][DOMAIN.name] === data.domains[largest][DOMAIN.name] + "/tensors" &&
				peak(number) >= peak(largest) / 2);
			bar.select("select[name=memory]").property("value", tensors !== undefined ? String(tensors) : "devices");
		}

		function rebuild() {
			const value = metrics.find(one => one[0] === metric())[2];
			const wanted = memory();
			root = buildTree(value, site => {
				const domain = data.domains[site[SITE.domain]];
				return (withImports() || (site[SITE.flags] & 1) === 0) && (process() === "all" || Number(process()) === site[SITE.process]) &&
					(wanted === "host" ? !domain[DOMAIN.device] && !domain[DOMAIN.space]
						: wanted === "devices" ? domain[DOMAIN.device] && !isPart(domain) : Number(wanted) === site[SITE.domain]);
			}, layer(), isInverted());
			focus = root;
			draw();
		}

		const label = node => node.frame === TOGETHER ? count(node.count) + " narrow stacks" : node.frame < 0 ? "all" : text(data.frames[node.frame][FRAME.place]);

		function tell(node) {
			status.text(label(node) + ": " + bytes(node.value) + ", " + share(node.value, root.value) + " of all" +
				(node === root && root.small > 0 ? "; " + bytes(root.small) + " of it at small sites, which are not drawn" : "") +
				(node === focus && isCut ? "; narrow stacks are cut: zoom in to see all of them" : ""));
		}

		function draw() {
			const width = room();
			let boxes = [];
			let depth = 0;
			const above = [];
			for (let node = focus.parent; node !== null; node = node.parent)
				above.unshift(node);
			above.forEach((node, level) => boxes.push({ node: node, x: 0, width: width, level: level, isAbove: true }));
			(function place(node, x, level) {
				const own = focus.value > 0 ? width * node.value / focus.value : 0;
				if (own < 0.6)
					return;
				boxes.push({ node: node, x: x, width: own, level: level, isAbove: false });
				depth = Math.max(depth, level);
				const isNarrow = child => width * child.value < NARROW * focus.value;
				const children = own < NARROW ? [] : Array.from(node.children.values()).sort((a, b) => b.value - a.value);
				const narrow = children.filter(isNarrow);
				if (narrow.length > 1)
					children.splice(children.length - narrow.length, narrow.length,
						{ frame: TOGETHER, count: narrow.length, value: d3.sum(narrow, child => child.value), children: new Map(), parent: node });
				children.forEach(child => {
					place(child, x, level + 1);
					x += width * child.value / focus.value;
				});
			})(focus, 0, above.length);
			/* A recursion of a few pixels does not push the rest out of sight: who zooms sees it. */
			const wide = (d3.max(boxes, d => d.width >= WIDE ? d.level : 0) || 0) + DEEPER; // of nothing there is no box
			const all = boxes.length;
			boxes = boxes.filter(d => d.level <= wide);
			isCut = boxes.length < all;
			depth = Math.min(depth, wide);
			const wanted = search.property("value").toLowerCase();
			const height = (Math.max(depth, above.length) + 1) * ROW;
			const y = level => isUpwards() ? height - (level + 1) * ROW : level * ROW; // the outermost at the top, where one looks first
			svg.attr("viewBox", "0 0 " + width + " " + height).attr("height", height);
			svg.selectAll("g").remove();
			const box = svg.selectAll("g").data(boxes).enter().append("g")
				.attr("class", d => (d.isAbove ? "faded" : "") + (wanted !== "" && label(d.node).toLowerCase().includes(wanted) ? " found" : ""))
				.attr("transform", d => "translate(" + d.x + "," + y(d.level) + ")")
				.attr("tabindex", d => d.width > 20 ? 0 : null).attr("role", "button")
				.attr("aria-label", d => label(d.node) + ", " + bytes(d.node.value) + ", " + share(d.node.value, root.value))
				.on("click", zoom).on("mouseenter", d => tell(d.node)).on("focus", d => tell(d.node))
				.on("keydown", d => {
					if (d3.event.key === "Enter" || d3.event.key === " ") {
						d3.event.preventDefault();
						zoom(d);
					} else if (d3.event.key === "Escape") {
						focus = root;
						draw();
					}
				});
			box.append("rect").attr("width", d => d.width).attr("height", ROW - 1)
				.attr("fill", d => d.node.frame < 0 ? "var(--panel)" : kindOf(d.node.frame)[2]);
			box.filter(d => d.width > 40).append("text").attr("x", 4).attr("y", 13).attr("class", d => d.node.frame < 0 ? "on-panel" : null)
				.text(d => {
					const room = Math.floor((d.width - 8) / 6.2);
					const whole = label(d.node) + "  " + bytes(d.node.value);
					return whole.length <= room ? whole : whole.slice(0, Math.max(0, room - 1)) + "…";
				});
			if (root.value === 0)
				status.text("There is nothing of this kind.");
			else
				tell(focus);
		}

		function zoom(d) {
			focus = d.node.frame === TOGETHER ? d.node.parent : d.node;
			draw();
		}
		rebuild();
		d3.select(window).on("resize.flame", () => { if (section.attr("hidden") === null) draw(); });
	}

	/* ---- timeline ---- */

	const POINT = { time: 0, resident: 1, limit: 2, live: 3, end: 4, step: 5, rest: 6 };
	const STACKED = { not: 0, host: 1, device: 2 };
	const MARK = { time: 0, kind: 1, name: 2, snapshot: 3, live: 4 };
	const SIGNALS = { 2: "SIGINT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM", 24: "SIGXCPU" };
	const clock = us => us < 1e6 ? (us / 1000).toFixed(us < 1e4 ? 1 : 0) + " ms" : duration(us / 1000);

	const lineName = line => text(line[1]) !== "" ? text(line[1]) : "no line known";

	/* What is drawn of a process: points as [microseconds, resident set, limit, live], and the layers of the stack, the lowest first. */
	function historyOf(process, by, memory) {
		const timeline = process.timeline;
		const points = timeline.points;
		if (points.length < 2)
			return { points: process.beats.map(beat => [beat[0] * 1000, beat[2], beat[4], beat[1], 0, 0]),
				layers: [{ name: "live bytes at lines", values: process.beats.map(beat => beat[1]) }], isOld: true };
		const count = timeline.domains.length / 2;
		const wanted = memory === "devices" ? STACKED.device : STACKED.host;
		const domains = d3.range(0, count).map(number => ({ name: data.domains[timeline.domains[2 * number]][DOMAIN.name], number: number,
			stacked: timeline.domains[2 * number + 1] }));
		const own = domains.filter(domain => domain.stacked === wanted);
		const column = at => points.map(point => point[POINT.rest + at]);
		const sums = points.map(point => d3.sum(own, domain => point[POINT.rest + domain.number]));
		let layers = own.map(domain => ({ name: domain.name, values: column(domain.number) }));
		if (by === "lines") {
			let lines = timeline.lines.map((line, number) => ({ line: line, name: lineName(line), domain: data.domains[line[0]][DOMAIN.name], values: column(count + number),
				isOwn: own.some(domain => timeline.domains[2 * domain.number] === line[0]), isTensor: /\/tensors$/.test(data.domains[line[0]][DOMAIN.name]) }));
			const hasTensors = wanted === STACKED.device && lines.some(line => line.isTensor);
			lines = lines.filter(line => hasTensors ? line.isTensor : line.isOwn);
			lines = lines.filter(line => !line.line[2] && line.values.some((value, at) => value > 0 && !points[at][POINT.end])); // only there all are known
			const rest = sums.map((sum, at) => Math.max(0, sum - d3.sum(lines, line => line.values[at])));
			layers = lines.concat([{ name: "imports and all other lines", values: rest, isRest: true }]);
		}
		layers.sort((a, b) => (a.isRest ? 1 : 0) - (b.isRest ? 1 : 0) || d3.max(b.values) - d3.max(a.values));
		return { points: points, layers: layers.filter(layer => d3.max(layer.values) > 0), isOld: false };
	}

	function stretchOf(history, span) {
		const inside = history.points.map((_, at) => at).filter(at => history.points[at][POINT.time] >= span[0] && history.points[at][POINT.time] <= span[1]);
		const cut = values => values.slice(inside[0], inside[inside.length - 1] + 1);
		return inside.length < 2 ? history : { points: cut(history.points), isOld: history.isOld,
			layers: history.layers.map(layer => Object.assign({}, layer, { values: cut(layer.values) })) };
	}

	/* Names of moments, with how they are drawn. */
	function momentsOf(process, last) {
		const words = { guard: ["guard passed", "guard"], refused: ["request refused", "refused"], program: ["", "mark"], outside: ["", "mark"], even: ["", "snapshot"] };
		const moments = process.marks.filter(mark => words[mark[MARK.kind]]).map(mark => {
			const name = text(mark[MARK.name]);
			const word = words[mark[MARK.kind]];
			return { time: mark[MARK.time], kind: mark[MARK.snapshot] && word[1] === "mark" ? "snapshot" : word[1],
				name: word[0] === "" ? name !== "" ? name : "snapshot" : mark[MARK.kind] === "refused" && name !== "" ? word[0] + ": " + name : word[0] };
		});
		if (process.state === "signal")
			moments.push({ time: last, kind: "death", name: "ended by " + (SIGNALS[process.signal] || "signal " + process.signal) });
		else if (process.state === "gone")
			moments.push({ time: last, kind: "death", name: "gone" });
		return moments;
	}

	function drawTimeline(section) {
		const shown = data.processes.map((process, number) => ({ process: process, number: number }))
			.filter(one => one.process.timeline.points.length > 1 || one.process.beats.length > 1);
		if (shown.length === 0) {
			section.append("p").text("The program was too short: it was looked at fewer than two times.");
			return;
		}
		const bar = section.append("div").attr("class", "bar");
		shown.sort((a, b) => b.process.peak - a.process.peak);
		let span = null;
		const which = shown.length > 1 ? choice(bar, "Process", "history-of", shown.map(one => [String(one.number), one.process.name + " " + one.process.pid]), () => zoom(null))
			: () => String(shown[0].number);
		const DRAGGED = 5; // pixels: less is a click
		const by = choice(bar, "Show", "by", [["lines", "by line"], ["domains", "by domain"]], draw);
		const hasDevices = data.domains.some(domain => domain[DOMAIN.device]);
		const memory = hasDevices ? choice(bar, "memory", "timeline-memory", [["host", "of the host"], ["devices", "of devices"]], draw) : () => "host";
		if (hasDevices && isMostlyDevice)
			bar.select("select[name=timeline-memory]").property("value", "devices");
		const whole = bar.append("button").text("The whole time").on("click", () => zoom(null));
		const status = section.append("p").attr("class", "status").attr("aria-live", "polite");
		const svg = section.append("svg").attr("class", "timeline").attr("role", "img").attr("tabindex", 0);
		const legend = section.append("ul").attr("class", "layers");
		const note = section.append("p").attr("class", "soft");
		let chosen = -1;

		function zoom(stretch) {
			span = stretch;
			draw();
		}

		function draw() {
			const process = data.processes[Number(which())];
			const isHost = memory() === "host";
			const all = historyOf(process, by(), memory());
			const history = span === null ? all : stretchOf(all, span);
			const points = history.points;
			const width = room();
			const size = { left: 64, right: 28, top: 30, bottom: 30, height: 360 };
			const first = points[0][POINT.time];
			const last = Math.max(points[points.length - 1][POINT.time], first + 1);
			const end = all.points[all.points.length - 1][POINT.time];
			const moments = momentsOf(process, end).filter(moment => (moment.time >= first && moment.time <= last) || (last >= end && moment.time >= end));
			const limit = isHost ? points[points.length - 1][POINT.limit] : null;
			const sums = points.map((_, at) => d3.sum(history.layers, layer => layer.values[at]));
			const most = d3.max(points, (point, at) => Math.max(sums[at], isHost ? point[POINT.resident] : 0)) || 1;
			const hasLimit = limit !== null && limit < 4 * most;
			const top = 1.05 * (hasLimit ? Math.max(most, limit) : most);
			const x = d3.scale.linear().domain([first, last]).range([size.left, width - size.right]);
			const y = d3.scale.linear().domain([0, top]).range([size.height - size.bottom, size.top]);
			const step = Math.pow(2, Math.ceil(Math.log(top / 6) / Math.LN2)); // round in KiB and MiB
			let base = points.map(() => 0);
			let stepNote = "";

			whole.style("display", span === null ? "none" : null);
			svg.attr("viewBox", "0 0 " + width + " " + size.height).attr("height", size.height).selectAll("*").remove();
			svg.attr("aria-label", "Memory of " + process.name + " over time, by " + by().slice(0, -1) + ": at most " + bytes(d3.max(sums)) + " live" +
				(isHost ? ", " + bytes(d3.max(points, point => point[POINT.resident])) + " in memory" : "") +
				moments.map(moment => "; " + moment.name + " at " + clock(moment.time)).join(""));
			svg.append("g").attr("class", "axis").attr("transform", "translate(0," + (size.height - size.bottom) + ")")
				.call(d3.svg.axis().scale(x).orient("bottom").ticks(Math.max(2, width / 140)).tickFormat(clock));
			svg.append("g").attr("class", "axis").attr("transform", "translate(" + size.left + ",0)")
				.call(d3.svg.axis().scale(y).orient("left").tickValues(d3.range(0, top, step)).tickFormat(bytes));
			history.layers.forEach((layer, number) => {
				const from = base;
				base = from.map((value, at) => value + layer.values[at]);
				const to = base;
				layer.colour = layer.isRest ? "var(--native)" : "var(--layer-" + number % 10 + ")";
				svg.append("path").attr("class", "layer").attr("fill", layer.colour).attr("data-layer", number)
					.attr("d", d3.svg.area().x((_, at) => x(points[at][POINT.time])).y0((_, at) => y(from[at])).y1((_, at) => y(to[at]))(points))
					.append("title").text(layer.name);
			});
			if (isHost)
				svg.append("path").attr("class", "resident").attr("fill", "none").attr("stroke", "var(--text)").attr("stroke-width", 1.5)
					.attr("d", d3.svg.line().defined(point => point[POINT.resident] !== 0).x(point => x(point[POINT.time])).y(point => y(point[POINT.resident]))(points));
			if (hasLimit) {
				svg.append("line").attr("class", "limit").attr("x1", size.left).attr("x2", width - size.right).attr("y1", y(limit)).attr("y2", y(limit))
					.attr("stroke", "var(--limit)").attr("stroke-width", 2).attr("stroke-dasharray", "6 4");
				svg.append("text").attr("x", size.left + 6).attr("y", y(limit) - 5).attr("class", "halo").text("limit " + bytes(limit));
			}
			drawSteps();
			drawMoments();
			drawCursor();
			drawLegend();

			/* Where a hundred steps, or ten, or so, were made: of the count that goes on to the end. */
			function drawSteps() {
				let begin = points.length - 1;
				while (begin > 0 && points[begin - 1][POINT.step] <= points[begin][POINT.step])
					begin--;
				const all = points[points.length - 1][POINT.step] - points[begin][POINT.step];
				if (all < 2)
					return;
				const every = Math.pow(10, Math.max(0, Math.ceil(Math.log(all / Math.max(2, width / 90)) / Math.LN10)));
				let next = Math.floor(points[begin][POINT.step] / every) * every + every;
				for (let at = begin; at < points.length; at++) {
					if (points[at][POINT.step] < next)
						continue;
					next = Math.floor(points[at][POINT.step] / every) * every + every;
					svg.append("line").attr("class", "step").attr("x1", x(points[at][POINT.time])).attr("x2", x(points[at][POINT.time]))
						.attr("y1", size.height - size.bottom - 6).attr("y2", size.height - size.bottom).attr("stroke", "var(--text)")
						.append("title").text("step " + count(next - every));
				}
				stepNote = " Each small tick above the time: " + count(every) + (every === 1 ? " step." : " steps.");
			}

			/* Texts that would cover others are left to the list below the picture: how it ended comes first. */
			function drawMoments() {
				const order = ["death", "guard", "refused", "snapshot", "mark"];
				const taken = [];
				moments.slice().sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || a.time - b.time).forEach(moment => {
					const at = x(Math.min(last, Math.max(first, moment.time)));
					const colour = moment.kind === "mark" || moment.kind === "snapshot" ? "var(--accent)" : "var(--alarm)";
					const group = svg.append("g").attr("class", "moment " + moment.kind);
					group.append("line").attr("x1", at).attr("x2", at).attr("y1", size.top - 4).attr("y2", size.height - size.bottom)
						.attr("stroke", colour).attr("stroke-width", moment.kind === "death" ? 2.5 : 1).attr("stroke-dasharray", moment.kind === "refused" ? "2 3" : null);
					if (moment.kind === "snapshot")
						group.append("circle").attr("cx", at).attr("cy", size.top - 4).attr("r", 3).attr("fill", colour);
					group.append("title").text(moment.name + ", " + clock(moment.time));
					const name = moment.name.length > 24 ? moment.name.slice(0, 23) + "…" : moment.name;
					const room = 6.5 * name.length;
					const isLeft = at + room > width - size.right;
					const from = isLeft ? at - room : at;
					if (from < 0 || taken.some(other => from < other[1] && other[0] < from + room))
						return;
					taken.push([from, from + room + 8]);
					group.append("text").attr("x", at).attr("y", size.top - 12).attr("text-anchor", isLeft ? "end" : "start").text(name);
				});
			}

			function drawCursor() {
				const line = svg.append("line").attr("class", "cursor").attr("y1", size.top).attr("y2", size.height - size.bottom).attr("stroke", "var(--text)")
					.attr("stroke-opacity", .5).style("display", "none");
				const areas = svg.append("rect").attr("class", "ground").attr("x", size.left).attr("y", size.top).attr("width", width - size.left - size.right)
					.attr("height", size.height - size.bottom - size.top).attr("fill", "transparent");
				function tell(at) {
					const point = points[at];
					const parts = history.layers.map(layer => [layer.name, layer.values[at]]).filter(part => part[1] > 0).sort((a, b) => b[1] - a[1]);
					chosen = at;
					line.attr("x1", x(point[POINT.time])).attr("x2", x(point[POINT.time])).style("display", null);
					status.text(clock(point[POINT.time]) + (point[POINT.end] ? " (the end)" : "") + ": " + bytes(sums[at]) + " live" +
						(isHost && point[POINT.resident] !== 0 ? ", " + bytes(point[POINT.resident]) + " in memory" : "") +
						parts.slice(0, 3).map(part => "; " + part[0] + " " + bytes(part[1])).join(""));
				}
				const picked = svg.insert("rect", ".ground").attr("class", "picked").attr("y", size.top).attr("height", size.height - size.bottom - size.top).style("display", "none");
				let from = null;
				areas.on("mousemove", function () {
					const to = d3.mouse(this)[0];
					const at = d3.bisector(point => point[POINT.time]).left(points, x.invert(to));
					tell(Math.min(points.length - 1, at));
					if (from !== null)
						picked.attr("x", Math.min(from, to)).attr("width", Math.abs(to - from)).style("display", null);
				}).on("mousedown", function () {
					d3.event.preventDefault(); // no text is chosen meanwhile
					from = d3.mouse(this)[0];
				}).on("mouseup", function () {
					const ends = [from, d3.mouse(this)[0]].map(x.invert).sort(d3.ascending);
					if (from !== null && Math.abs(d3.mouse(this)[0] - from) >= DRAGGED)
						zoom(ends);
					from = null;
				}).on("mouseleave", () => {
					from = null;
					picked.style("display", "none");
				});
				svg.on("keydown", () => {
					const move = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity }[d3.event.key];
					if (move === undefined)
						return;
					d3.event.preventDefault();
					tell(Math.max(0, Math.min(points.length - 1, (chosen < 0 ? 0 : chosen) + move)));
				});
				chosen = -1;
				const grown = values => values[values.length - 1] - values[0];
				const change = value => (value < 0 ? "−" : "+") + bytes(Math.abs(value));
				status.text((span === null ? "" : "From " + clock(first) + " to " + clock(last) + ": " + change(grown(sums)) + " live" +
					history.layers.filter(layer => grown(layer.values) !== 0).sort((a, b) => Math.abs(grown(b.values)) - Math.abs(grown(a.values))).slice(0, 3)
						.map(layer => "; " + layer.name + " " + change(grown(layer.values))).join("") + ". ") +
					"At most " + bytes(d3.max(sums)) + " live" + (isHost ? " and " + bytes(d3.max(points, point => point[POINT.resident])) + " in memory" : "") +
					(limit !== null ? "; the limit was " + bytes(limit) : "") + ".");
			}

			function drawLegend() {
				legend.selectAll("*").remove();
				history.layers.forEach((layer, number) => {
					const item = legend.append("li");
					const button = item.append("button").attr("class", "link").attr("aria-pressed", "false").on("click", () => {
						const isOn = button.attr("aria-pressed") !== "true";
						legend.selectAll("button.link").attr("aria-pressed", "false");
						button.attr("aria-pressed", String(isOn));
						svg.selectAll(".layer").classed("faded", function () { return isOn && Number(this.getAttribute("data-layer")) !== number; });
					});
					button.append("i").style("background", layer.colour);
					button.append("span").text(layer.name);
					item.append("span").attr("class", "soft").text(" at most " + bytes(d3.max(layer.values)) + (layer.domain && layer.domain !== "heap" ? ", " + layer.domain : ""));
				});
				if (isHost) {
					const item = legend.append("li");
					item.append("i").attr("class", "stroke");
					item.append("span").text("in memory (resident set)");
				}
				moments.filter(moment => moment.kind !== "snapshot" || moment.name !== "snapshot").sort((a, b) => a.time - b.time).forEach(moment =>
					legend.append("li").attr("class", "moment").text("│ " + clock(moment.time) + "  " + moment.name));
				note.text(history.isOld ? "Each point is a sample of the recorder; the last 128 samples of a process are kept."
					: points.length + " points" + (by() === "lines" ? "; at each the 32 call sites that held most are known, what others held is in \"imports and all other lines\"" : "") +
						". Drag over a stretch of time to see it alone, with what grew in it." + stepNote +
						(isHost && limit !== null && points.some(point => point[POINT.resident] > limit)
							? " More than the limit can be in memory: what another container read first, as libraries and files, does not count against it." : ""));
			}
		}
		draw();
		d3.select(window).on("resize.timeline", () => { if (section.attr("hidden") === null) draw(); });
	}

	/* ---- source ---- */

	function drawSource(section) {
		const files = Array.from(sources.keys());
		const held = new Map(files.map(file => [file, new Map()]));
		data.lines.forEach(line => {
			const lines = held.get(line[LINE.file]);
			if (lines === undefined || (line[LINE.flags] & FLAG.space) !== 0)
				return;
			const sum = lines.get(line[LINE.number]) || [0, 0, 0, ""];
			lines.set(line[LINE.number], [sum[0] + line[LINE.peak], sum[1] + line[LINE.live], sum[2] + line[LINE.allocated],
				growth(line) === "leak" ? "leak" : sum[3]]);
		});
		files.sort((a, b) => d3.sum(Array.from(held.get(b).values()), one => one[0]) - d3.sum(Array.from(held.get(a).values()), one => one[0]));
		const bar = section.append("div").attr("class", "bar");
		if (files.length === 0) {
			section.append("p").text(data.sources === undefined ? "Source texts were left out."
				: "No file of yours can be shown: none is here, or each was changed since.");
			sourceTab.refresh = () => undefined;
			return;
		}
		const file = choice(bar, "File", "file", files.map(number => [String(number), text(number)]), () => { chosenFile = Number(file()); chosenLine = 0; draw(); });
		const view = section.append("div").attr("class", "source-view").attr("tabindex", 0).append("table").attr("class", "mono");

		function draw() {
			const number = chosenFile !== null && sources.has(chosenFile) ? chosenFile : files[0];
			const lines = sources.get(number);
			const sums = held.get(number);
			bar.select("select").property("value", String(number));
			view.selectAll("*").remove();
			const head = view.append("thead").append("tr");
			["Peak", "Live", "Allocated", "", "Line", ""].forEach((name, index) => head.append("th").attr("scope", "col").attr("class", (index < 5 ? "number" : "") + (index === 1 || index === 2 ? " roomy" : "")).text(name));
			const body = view.append("tbody");
			for (let line = 1; 2 * line <= lines.length; line++) {
				const sum = sums.get(line);
				const row = body.append("tr").attr("class", (sum ? "held" : "") + (line === chosenLine ? " chosen" : ""));
				[0, 1, 2].forEach(which => row.append("td").attr("class", which !== 0 ? "number roomy" : "number").text(sum && sum[which] !== 0 ? bytes(sum[which]) : ""));
				row.append("td").attr("class", "alarm").text(sum ? sum[3] : "");
				row.append("td").attr("class", "number soft").text(line);
				row.append("td").attr("class", "code").text(" ".repeat(lines[2 * line - 2]) + lines[2 * line - 1]);
			}
			const chosen = body.select("tr.chosen").node();
			if (chosen !== null)
				chosen.scrollIntoView({ block: "center" });
		}
		sourceTab.refresh = draw;
		draw();
	}

	/* ---- processes, devices, losses ---- */

	function putTable(section, names, rows) {
		const table = section.append("div").attr("class", "scroll").append("table");
		table.append("thead").append("tr").selectAll("th").data(names).enter().append("th").attr("scope", "col")
			.attr("class", (_, index) => index === 0 ? null : "number").text(name => name);
		table.append("tbody").selectAll("tr").data(rows).enter().append("tr").selectAll("td").data(row => row).enter().append("td")
			.attr("class", (_, index) => index === 0 ? null : "number").text(cell => cell);
	}

	/* Below its parent, each a step further to the right; how one ended that did not end by itself stands out. */
	function putProcessTree(section) {
		const table = section.append("div").attr("class", "scroll").append("table").attr("class", "processes");
		const largest = d3.max(data.processes, process => process.peak) || 1;
		const orNone = value => value !== 0 ? bytes(value) : "";
		table.append("thead").append("tr").selectAll("th").data(["Process", "State", "Peak", "Live", "In memory", "Inherited", "Copied of that"]).enter()
			.append("th").attr("scope", "col").attr("class", (_, index) => index < 2 ? null : "number").text(name => name);
		const body = table.append("tbody");
		(function add(parent, depth) {
			data.processes.forEach((process, number) => {
				if (process.parent !== parent)
					return;
				const row = body.append("tr");
				row.append("td").style("padding-left", 8 + 18 * Math.min(depth, 10) + "px").text((depth !== 0 ? "└ " : "") + process.name + " (" + process.pid + ")");
				row.append("td").attr("class", process.state === "signal" || process.state === "gone" ? "alarm" : null)
					.text(process.state !== "signal" ? process.state : SIGNALS[process.signal] || "signal " + process.signal);
				const peak = row.append("td").attr("class", "number");
				putTrack(peak, process.peak, largest);
				peak.append("span").attr("class", "figure").text(bytes(process.peak));
				[bytes(process.live), process.most_in_memory ? bytes(process.most_in_memory) : "not known", orNone(process.inherited),
					orNone(process.copied)].forEach(cell => row.append("td").attr("class", "number").text(cell));
				add(number, depth + 1);
			});
		})(-1, 0);
	}

	function drawProcesses(section) {
		section.append("h2").text("Memory by domain");
		putTable(section, ["Domain", "Peak", "Live", "Allocated"], data.domains.map(domain =>
			[domain[DOMAIN.name] + (domain[DOMAIN.space] ? " (addresses, no memory)" : ""), bytes(domain[DOMAIN.peak]), bytes(domain[DOMAIN.live]), bytes(domain[DOMAIN.allocated])]));
		data.domains.filter(domain => domain[DOMAIN.parts].length !== 0).forEach(domain => {
			const parts = d3.range(0, domain[DOMAIN.parts].length, 2).map(at => [domain[DOMAIN.parts][at], domain[DOMAIN.parts][at + 1]]);
			const live = d3.sum(parts, part => part[1]);
			const colours = parts.map((_, index) => ["var(--user)", "var(--python)", "var(--line)", "var(--other)", "var(--limit)"][index % 5]);
			if (domain[DOMAIN.total] > 0) { // what a refused request found
				parts.push(["of other programs and the driver", Math.max(0, domain[DOMAIN.total] - domain[DOMAIN.free] - live)], ["free", domain[DOMAIN.free]]);
				colours.push("var(--native)", "var(--edge)");
			}
			const all = d3.sum(parts, part => part[1]);
			section.append("h2").text(domain[DOMAIN.name] + ": " + bytes(live) + " live" +
				(domain[DOMAIN.total] > 0 ? " of " + bytes(domain[DOMAIN.total]) + " when a request was refused" : ""));
			const svg = section.append("svg").attr("viewBox", "0 0 1000 24").attr("preserveAspectRatio", "none").attr("height", 24).attr("role", "img")
				.attr("aria-label", parts.map(part => part[0] + " " + bytes(part[1])).join(", "));
			let x = 0;
			parts.forEach((part, index) => {
				svg.append("rect").attr("x", x).attr("width", all > 0 ? 1000 * part[1] / all : 0).attr("height", 24).attr("fill", colours[index]);
				x += all > 0 ? 1000 * part[1] / all : 0;
			});
			const legend = section.append("p").attr("class", "legend");
			parts.forEach((part, index) => {
				const item = legend.append("span");
				item.append("i").style("background", colours[index]);
				item.append("span").text(part[0] + " " + bytes(part[1]));
			});
		});
		section.append("h2").text("Tree of processes");
		putProcessTree(section);
		const missing = data.losses.filter(loss => loss[2]);
		const notes = data.losses.filter(loss => !loss[2]);
		section.append("h2").text("Losses");
		if (missing.length === 0)
			section.append("p").text("None: all was recorded.");
		else
			putTable(section, ["What is missing", "Count"], missing.map(loss => [loss[1], count(loss[0])]));
		if (notes.length !== 0) {
			section.append("h2").text("Notes");
			putTable(section, ["What", "Count"], notes.map(loss => [loss[1], count(loss[0])]));
		}
	}

	const flame = addTab("Flame graph", drawFlame);
	addTab("Lines", drawLines);
	const timeline = addTab("Timeline", drawTimeline);
	sourceTab = addTab("Source", drawSource);
	sourceTab.refresh = () => undefined;
	addTab("Processes", drawProcesses);
	showKept(!data.verdict.has_ended_well && first !== undefined && first.timeline.points.length > 1 ? timeline : flame);
	window.addEventListener("beforeprint", () => {
		tabs.forEach(tab => { if (!tab.isDrawn) { tab.isDrawn = true; tab.draw(tab.section); } });
		d3.selectAll("details").attr("open", "");
	});
})();
