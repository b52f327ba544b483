// Tools that try out everything a page tool may do, well or badly.
"use strict";
{
  const mark = (name, value) => ((window.marks ??= {})[name] = value);
  const sleep = (s) => new Promise((done) => setTimeout(done, s * 1000));
  const object = (properties, required = []) => ({ type: "object", properties, required });
  const number = { type: "number" };
  const string = { type: "string" };

  /** Waits for the abort of a run, notes its reason, and throws it. */
  const aborted = (signal, tag) =>
    new Promise((_, reject) => {
      const stop = () => {
        mark(tag, { reason: String(signal.reason?.message ?? signal.reason), aborted: signal.aborted });
        reject(signal.reason);
      };
      if (signal.aborted) stop();
      else signal.addEventListener("abort", stop, { once: true });
    });

  /** A tool as people write it who like classes: what it needs is on its prototype. */
  class Greeter {
    #word = "hello";
    get name() {
      return "greet";
    }
    get description() {
      return "greets, from a class";
    }
    get inputSchema() {
      return object({ who: string }, ["who"]);
    }
    execute({ who }, { reportProgress }) {
      reportProgress(`greeting ${who}`);
      return `${this.#word} ${who}`;
    }
  }

  /** What JSON knows, and what it does not. */
  const oddValues = () => {
    const cycle = { name: "round" };
    cycle.self = cycle;
    return {
      undefined: undefined,
      null: null,
      number: 7,
      nan: NaN,
      list: [1, 2, 3],
      cycle,
      symbol: Symbol("s"),
      bigint: 10n,
      function: () => 1,
      map: new Map([["a", 1]]),
      date: new Date(0),
      window: window,
      element: document.documentElement,
      generator: (async function* () {
        yield 1;
      })(),
      toJSON: { toJSON: () => "as told" },
      throwing: {
        get value() {
          throw new Error("a getter threw");
        },
      },
      content: { content: [{ type: "text", text: "as MCP has it" }] },
      lone: "\ud800",
    };
  };

  const tools = {
    count: {
      inputSchema: object({ n: { type: "integer" }, pause: number, tag: string }, ["n"]),
      async execute({ n, pause = 0, tag = "count" }, { reportProgress }) {
        let i = 0;
        while (i < n && window.enough !== tag) {
          reportProgress({ progress: ++i, total: n, message: `${tag} ${i}` });
          if (pause) await sleep(pause);
        }
        return { counted: i, tag };
      },
    },
    echo: {
      inputSchema: object({ text: string }, ["text"]),
      execute: ({ text }) => text,
    },
    linger: {
      inputSchema: object({ tag: string }, ["tag"]),
      execute({ tag }, { signal, reportProgress }) {
        mark(tag, "started");
        reportProgress({ progress: 1, total: 4, message: `lingering ${tag}` });
        return aborted(signal, tag);
      },
    },
    paced: {
      inputSchema: object({ pauses: { type: "array", items: number } }, ["pauses"]),
      async execute({ pauses }, { reportProgress }) {
        for (const [index, pause] of pauses.entries()) {
          await sleep(pause);
          reportProgress({ progress: index + 1, message: "paced" });
        }
        return "done";
      },
    },
    beating: {
      inputSchema: object({ times: number, pause: number }, ["times", "pause"]),
      async execute({ times, pause }, { alive }) {
        for (let i = 0; i < times; i++) {
          await sleep(pause);
          alive();
        }
        return "beaten";
      },
    },
    flood: {
      inputSchema: object({ n: { type: "integer" } }, ["n"]),
      execute({ n }, { reportProgress }) {
        const began = performance.now();
        for (let i = 1; i <= n; i++) reportProgress({ progress: i, total: n, message: `drop ${i}` });
        return { ms: performance.now() - began };
      },
    },
    drip: {
      description: "floods, letting the page breathe now and then",
      inputSchema: object({ n: { type: "integer" } }, ["n"]),
      async execute({ n }, { reportProgress }) {
        const began = performance.now();
        for (let i = 1; i <= n; i++) {
          reportProgress({ progress: i, total: n });
          if (i % 500 === 0) await sleep(0);
        }
        return { ms: performance.now() - began };
      },
    },
    block: {
      inputSchema: object({ s: number, every: number }, ["s"]),
      execute({ s, every = 0 }, { reportProgress }) {
        const end = performance.now() + s * 1000;
        let due = performance.now() + every * 1000;
        let told = 0;
        while (performance.now() < end) {
          if (every && performance.now() >= due) {
            due += every * 1000;
            reportProgress({ progress: ++told, message: "blocking" });
          }
        }
        return { told };
      },
    },
    big: {
      inputSchema: object({ size: { type: "integer" } }, ["size"]),
      execute: ({ size }) => "x".repeat(size),
    },
    big_report: {
      inputSchema: object({ size: { type: "integer" } }, ["size"]),
      execute({ size }, { reportProgress }) {
        reportProgress({
          progress: 1,
          total: 2,
          message: "m".repeat(size),
          data: { text: "d".repeat(size) },
        });
        reportProgress({ progress: 2, total: 2, message: "small", data: { phase: "end" } });
        return "reported";
      },
    },
    odd_reports: {
      inputSchema: object({}),
      execute(_, { reportProgress }) {
        const cycle = {};
        cycle.self = cycle;
        const odd = [undefined, null, NaN, Infinity, -1, Symbol("s"), 10n, cycle, { progress: "3" }];
        for (const one of [...odd, { progress: NaN, total: -1, message: 7 }, { data: cycle }, () => 1]) {
          reportProgress(one);
        }
        reportProgress();
        reportProgress("the last one");
        return "never raised";
      },
    },
    give: {
      description: "gives back one of several odd values",
      inputSchema: object({ what: string }, ["what"]),
      execute({ what }) {
        return oddValues()[what];
      },
    },
    fail: {
      description: "throws one of several odd things",
      inputSchema: object({ what: string }, ["what"]),
      execute({ what }) {
        const thrown = {
          string: "just a string",
          error: Object.assign(new TypeError("the wrong type"), { code: "E_TYPE" }),
          dom: new DOMException("not here", "NotFoundError"),
          undefined: undefined,
          null: null,
          object: { message: "an object", code: 7 },
          empty: new Error(""),
          evil: new Proxy(new Error("x"), {
            get() {
              throw new Error("even its properties throw");
            },
          }),
          abort: new DOMException("the tool's own abort", "AbortError"),
        };
        throw thrown[what];
      },
    },
    input: {
      description: "gives back its input, _meta and all",
      inputSchema: object({}),
      execute: (input) => ({ input }),
    },
    context: {
      description: "says what it was given beside its input",
      inputSchema: object({}),
      execute: (_, context) => ({
        keys: Object.keys(context).sort(),
        id: context.toolExecutionId,
        signal: context.signal instanceof AbortSignal,
      }),
    },
    where: {
      description: "says where it runs",
      inputSchema: object({}),
      execute: () => ({ href: location.href, title: document.title, mark: window.name }),
    },
    late: {
      description: "reports after its end",
      inputSchema: object({}),
      execute(_, { reportProgress }) {
        setTimeout(() => reportProgress({ progress: 99, message: "too late" }), 50);
        return "early";
      },
    },
  };

  /** Registers the tools of this names, or all of them; gives back a promise of their registration. */
  window.register = (names = Object.keys(tools), options = undefined) =>
    Promise.all(
      names.map((name) =>
        document.modelContext.registerTool({ name, description: name, ...tools[name] }, options),
      ),
    );
  /** Offers a tool, in place of an earlier one of its name. */
  const made = Object.create(null);
  window.offer = (name, description, execute = () => name) => {
    made[name]?.abort("offered anew");
    made[name] = new AbortController();
    const tool = { name, description, inputSchema: object({}), execute };
    return document.modelContext.registerTool(tool, { signal: made[name].signal }).then(() => true);
  };
  /** Runs a tool as the page itself may, and tells all that was heard on the way. */
  window.runMonitored = async (name, input) => {
    const context = document.modelContext;
    const heard = [];
    const ids = new Set();
    let id;
    context.addEventListener("toolprogress", (event) => ids.add(event.toolExecutionId));
    const [tool] = (await context.getTools()).filter((one) => one.name === name);
    const monitor = (one) => {
      id = one.toolExecutionId;
      one.addEventListener("progress", (event) => heard.push(event.message));
    };
    const given = await context.executeTool(tool, input, { monitor });
    return { heard, id, ids: [...ids], given: typeof given === "string" ? JSON.parse(given) : given };
  };
  /** What a registration comes to: nothing, or the name of its error. */
  window.refusal = (name) =>
    document.modelContext.registerTool({ name, description: name, execute() {} }).then(
      () => "",
      (error) => error.name,
    );
  window.withdraw = (name) => made[name].abort("withdrawn");
  window.Greeter = Greeter;
  window.bench = tools;
  window.offerAll = async () => {
    await document.modelContext.registerTool(new Greeter());
    await window.register();
    mark("registered", true);
  };
}
