// The frames between a browser and the gateway, written by docs/messages.py from wire/extension.py; no edits.

export const SUBPROTOCOL = "afoot.link.1";
export const BEAT_MS = 20000;
export const PROOF_MS = 5000;

export const FROM_BROWSER = Object.freeze([
  "link.proof",
  "link.hello",
  "ping",
  "tab.opened",
  "tab.tools",
  "tab.ready",
  "tab.state",
  "tab.gone",
  "tab.list",
  "tool.progress",
  "tool.asking",
  "tool.log",
  "tool.result",
  "panel.watch",
  "panel.cancel",
  "panel.answer",
]);

export const TO_BROWSER = Object.freeze([
  "link.challenge",
  "link.proof",
  "link.welcome",
  "link.reload",
  "ping",
  "plugin.sync",
  "tool.dispatch",
  "tool.cancel",
  "tool.settled",
  "tab.reload",
  "panel.state",
  "panel.said",
]);

/**
 * The proof that a side knows the key; a browser adds a nonce of its own.
 * @typedef {{ mac: string, nonce?: string }} LinkProof
 */
/**
 * One JavaScript world of one document in which tools live: the page's own, or a plugin's.
 * @typedef {{ id: string, tab: string, frame?: string, document?: string, origin?: string, top?: string,
 * url?: string, title?: string, source?: string, visible?: boolean, frozen?: boolean }} PageContext
 */
/**
 * A run that a page context knows, and the number of the newest message about it.
 * @typedef {{ run: string, room: string, seq?: number }} RunPosition
 */
/**
 * A tab as its browser describes it; `why` says why nothing can run there.
 * @typedef {{ id: string, window?: string, title?: string, url?: string, active?: boolean, focused?: boolean,
 * frozen?: boolean, discarded?: boolean, why?: string }} Tab
 */
/**
 * The browser's first message after the proofs: everything that it has open.
 * @typedef {{ version: string, profile: string, rooms?: Array<PageContext>, running?: Array<RunPosition>,
 * tabs?: Array<Tab>, userScripts?: boolean, label?: string }} LinkHello
 */
/**
 * A sign of life; also its answer.
 * @typedef {object} Ping
 */
/**
 * A document has loaded, or has come back from the cache.
 * @typedef {{ room: PageContext, running?: Array<RunPosition> }} PageContextOpened
 */
/**
 * A tool as a page or a plugin describes it; all of it is untrusted.
 * @typedef {{ name: string, title?: string, description?: string, inputSchema?: unknown, outputSchema?:
 * unknown, annotations?: unknown, progress?: boolean, form?: boolean, icon?: string }} PageTool
 */
/**
 * All tools of a page context; `left_out` counts those over the page's own limit.
 * @typedef {{ room: string, tools: Array<PageTool>, leftOut?: number }} PageContextTools
 */
/**
 * The answer of a plugin's readiness probe.
 * @typedef {{ room: string, ready: boolean, why?: string }} PageContextReady
 */
/**
 * A document was hidden or shown, frozen or resumed, or changed its title or address (pushState).
 * @typedef {{ room: string, visible?: boolean, frozen?: boolean, url?: string, title?: string }}
 * PageContextState
 */
/**
 * A document is gone.
 * @typedef {{ room: string, why?: string }} PageContextGone
 */
/**
 * Every tab that the browser lets us see.
 * @typedef {{ tabs: Array<Tab> }} TabList
 */
/**
 * One report of a tool about its progress; `alive` alone is a heartbeat.
 * @typedef {{ progress?: number | null, total?: number | null, message?: string | null, data?: unknown,
 * alive?: boolean }} PageReport
 */
/**
 * Reports of a run, in order; `dropped` counts reports over the rate limit.
 * @typedef {{ room: string, run: string, seq: number, reports: Array<PageReport>, dropped?: number }}
 * RunProgress
 */
/**
 * A run waits for a person in its tab; without a message, it waits no longer.
 * @typedef {{ room: string, run: string, message?: string | null }} RunWaiting
 */
/**
 * A line that a run logged.
 * @typedef {{ room: string, run: string, text: string, level?: string }} RunLog
 */
/**
 * An error that a tool threw; `code` and `category` are the tool's own words.
 * @typedef {{ name?: string, message?: string, code?: string, category?: string, retryable?: boolean,
 * retryAfterMs?: number | null }} PageError
 */
/**
 * The end of a run: a value (none means undefined) or an error. Sent again until it is acknowledged.
 * @typedef {{ room: string, run: string, seq: number, value?: unknown, error?: PageError | null, aborted?:
 * boolean }} RunResult
 */
/**
 * The side panel was opened or closed.
 * @typedef {{ on: boolean }} PanelWatch
 */
/**
 * The person at the panel stops a call.
 * @typedef {{ call: string, reason?: string }} PanelCancel
 */
/**
 * The person at the panel answers a question.
 * @typedef {{ question: string, action?: string, content?: unknown }} PanelAnswer
 */
/**
 * The gateway's first message: its nonce, over which the browser proves that it knows the key.
 * @typedef {{ nonce: string }} LinkChallenge
 */
/**
 * A plugin, ready to run: the SDK and its files, as two scripts of one world; `key` names it.
 * @typedef {{ name: string, hash: string, key: string, matches: Array<string>, excludes?: Array<string>,
 * body?: string, files?: string }} PluginBundle
 */
/**
 * The welcome for a browser: the runs that continue, the runs to abort, and the plugins to run.
 * @typedef {{ epoch: string, keep?: Array<string>, abort?: Array<string>, plugins?: Array<PluginBundle> }}
 * LinkWelcome
 */
/**
 * The extension is to reload itself: newer files are on the disk.
 * @typedef {object} ExtensionReload
 */
/**
 * The plugins to run, and no others.
 * @typedef {{ plugins: Array<PluginBundle> }} PluginSync
 */
/**
 * Run a tool.
 * @typedef {{ room: string, run: string, tool: string, input: unknown }} RunDispatch
 */
/**
 * Stop a run.
 * @typedef {{ room: string, run: string, reason?: string }} RunCancel
 */
/**
 * The result of a run has arrived; the page need not keep it.
 * @typedef {{ room: string, run: string }} RunResultAck
 */
/**
 * Reload a tab.
 * @typedef {{ tab: string }} TabReload
 */
/**
 * The content of the side panel: live calls, calls that ended lately, open questions; and the time.
 * @typedef {{ now?: number | null, calls?: Array<CallView & { tab?: string }>, questions?:
 * Array<QuestionView>, tabs?: Array<PanelTab> }} PanelState
 */
/**
 * The outcome of an answer or a cancel from the side panel.
 * @typedef {{ about: string, error?: string }} PanelReply
 */
/**
 * An answer, by whom and when.
 * @typedef {{ action: string, content: unknown, by: string, at: number, surface: string, who: string | null
 * }} AnswerView
 */
/**
 * A decision that a reviewer may make.
 * @typedef {{ decision: string, title: string }} DecisionChoice
 */
/**
 * One text before and after; both are empty where it is too long to compare.
 * @typedef {{ before: string, after: string }} TextChange
 */
/**
 * The changes since the approval `at` that time; None where nothing has changed.
 * @typedef {{ at: number, definition: TextChange | null, arguments: TextChange | null }} ApprovalChanges
 */
/**
 * A question, and its answer once there is one.
 * @typedef {{ id: string, call: string, tool: string, key: string, kind: string, message: string, asked:
 * number, expires: number, schema?: unknown, params?: unknown, answer?: AnswerView, server?: string, caller?:
 * string, to?: string | null, arguments?: unknown, why?: string, choices?: Array<DecisionChoice>, source?:
 * string, destructive?: boolean, changed?: ApprovalChanges | null, digest?: string }} QuestionView
 */
/**
 * A tool's result.
 * @typedef {{ content: unknown, structured: unknown, is_error: boolean }} ResultView
 */
/**
 * Progress as the tool reported it: numbers and a message.
 * @typedef {{ at: number, progress?: number | null, total?: number | null, message?: string | null, source?:
 * string }} Reading
 */
/**
 * Why a call did not end well; every field is always there.
 * @typedef {{ message: string, category: string, code: string, retryable: boolean, retry_after_s: number |
 * null, clock: string | null, elapsed_s: number, last: Reading | null, side_effects: string, trace: string,
 * hint: string }} FailureView
 */
/**
 * Somebody, or a clock, wants the call to stop.
 * @typedef {{ at: number, by: string, reason: string, who?: string }} CancelRequested
 */
/**
 * A reading in the history; `left_out` counts the readings between it and the sample before.
 * @typedef {{ call: string, number: number, reading: Reading, left_out?: number }} Sample
 */
/**
 * Something slows or stops the place where it runs, as a hidden tab does; an empty `by` ends that.
 * @typedef {{ at: number, by?: string, hint?: string }} Hindered
 */
/**
 * The seconds that a call still takes; with a range if its pace, or its earlier runs, differ widely.
 * @typedef {{ left_s: number, low_s?: number | null, high_s?: number | null }} Eta
 */
/**
 * The numbers of calls that a call has made, that are live, and that did not end well.
 * @typedef {{ total: number, live: number, failed: number }} ChildCounts
 */
/**
 * A call below another one, as the followers of the upper one see it (P8).
 * @typedef {{ id: string, tool: string, state: string, outcome?: string | null, progress?: number | null,
 * total?: number | null, message?: string | null, parent?: string | null }} ChildSummary
 */
/**
 * The limits of a call, its last sign of life, and its time on the clock.
 * @typedef {{ idle_s: number | null, ceiling_s: number | null, answer_s: number, heard: number | null,
 * spent_s: number, since: number | null, patient_idle_s?: number, below?: Array<string> }} ClockView
 */
/**
 * A call. Unset fields are left out: some in the lines of the history, some in all but the full view.
 * @typedef {{ id: string, tool: string, server: string, caller: string, state: string, outcome: string |
 * null, progress: number | null, total: number | null, message: string | null, opened: number, started:
 * number | null, finished: number | null, elapsed_s: number, waiting?: string | null, questions?:
 * Array<QuestionView>, attempt?: number, seq?: number, readings?: number, arguments?: unknown, limits?:
 * Record<string, number | null>, result?: ResultView | null, failure?: FailureView | null, cancel?:
 * CancelRequested | null, partials?: Array<unknown>, settled?: Array<QuestionView>, samples?: Array<Sample>,
 * stalled?: boolean, detached?: boolean, task?: boolean, approved?: string, hindered?: Hindered | null,
 * rerun_of?: string | null, eta?: Eta | null, rate?: number | null, reported?: number | null, parent?: string
 * | null, children?: ChildCounts | null, below?: ChildCounts, trace?: string | null, trace_url?: string,
 * cpu_s?: number, redacted?: Array<string>, remote?: Array<ChildSummary>, source?: string, cancel_due?:
 * number, clocks?: ClockView }} CallView
 */
/**
 * A tab of the panel's own browser: its short key, the browser's id, whether tools can run there.
 * @typedef {{ key: string, tab: string, state: string, why?: string, tools?: number }} PanelTab
 */
/**
 * @typedef {{ method: "link.proof", params: LinkProof } | { method: "link.hello", params: LinkHello } | {
 * method: "ping", params: Ping } | { method: "tab.opened", params: PageContextOpened } | { method:
 * "tab.tools", params: PageContextTools } | { method: "tab.ready", params: PageContextReady } | { method:
 * "tab.state", params: PageContextState } | { method: "tab.gone", params: PageContextGone } | { method:
 * "tab.list", params: TabList } | { method: "tool.progress", params: RunProgress } | { method: "tool.asking",
 * params: RunWaiting } | { method: "tool.log", params: RunLog } | { method: "tool.result", params: RunResult
 * } | { method: "panel.watch", params: PanelWatch } | { method: "panel.cancel", params: PanelCancel } | {
 * method: "panel.answer", params: PanelAnswer }} FromBrowser
 */
/**
 * @typedef {{ method: "link.challenge", params: LinkChallenge } | { method: "link.proof", params: LinkProof }
 * | { method: "link.welcome", params: LinkWelcome } | { method: "link.reload", params: ExtensionReload } | {
 * method: "ping", params: Ping } | { method: "plugin.sync", params: PluginSync } | { method: "tool.dispatch",
 * params: RunDispatch } | { method: "tool.cancel", params: RunCancel } | { method: "tool.settled", params:
 * RunResultAck } | { method: "tab.reload", params: TabReload } | { method: "panel.state", params: PanelState
 * } | { method: "panel.said", params: PanelReply }} ToBrowser
 */
