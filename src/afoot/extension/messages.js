// The frames between a browser and the gateway, written by docs/messages.py from wire/link.py: do not edit.

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
 * Proves that a side knows the key; a browser adds a nonce of its own.
 * @typedef {{ mac: string, nonce?: string }} Proof
 */
/**
 * One world of one document in which tools live: the page's own, or a plugin's.
 * @typedef {{ id: string, tab: string, frame?: string, document?: string, origin?: string, top?: string,
 * url?: string, title?: string, source?: string, visible?: boolean, frozen?: boolean }} Room
 */
/**
 * A run that a room knows, and the number of the newest frame it made about it.
 * @typedef {{ run: string, room: string, seq?: number }} Running
 */
/**
 * A tab as its browser sees it; `why` says why nothing can run there.
 * @typedef {{ id: string, window?: string, title?: string, url?: string, active?: boolean, focused?: boolean,
 * frozen?: boolean, discarded?: boolean, why?: string }} Tab
 */
/**
 * A browser is there, with all that it has open.
 * @typedef {{ version: string, profile: string, rooms?: Array<Room>, running?: Array<Running>, tabs?:
 * Array<Tab>, userScripts?: boolean, label?: string }} Hello
 */
/**
 * Nothing but a sign of life; also its answer.
 * @typedef {object} Ping
 */
/**
 * A document has loaded, or is there again.
 * @typedef {{ room: Room, running?: Array<Running> }} RoomOpened
 */
/**
 * A tool as a page or a plugin describes it; all of it is untrusted.
 * @typedef {{ name: string, title?: string, description?: string, inputSchema?: unknown, outputSchema?:
 * unknown, annotations?: unknown, progress?: boolean, form?: boolean, icon?: string }} PageTool
 */
/**
 * The tools of a room, all of them; `left_out` counts those over the page's own limit.
 * @typedef {{ room: string, tools: Array<PageTool>, leftOut?: number }} RoomTools
 */
/**
 * What a plugin's readiness probe said.
 * @typedef {{ room: string, ready: boolean, why?: string }} RoomReady
 */
/**
 * A document was hidden or shown, frozen or resumed, or has another title or address (pushState).
 * @typedef {{ room: string, visible?: boolean, frozen?: boolean, url?: string, title?: string }} RoomState
 */
/**
 * A document is there no more.
 * @typedef {{ room: string, why?: string }} RoomGone
 */
/**
 * Every tab that the browser lets us see.
 * @typedef {{ tabs: Array<Tab> }} TabList
 */
/**
 * What a tool says of its progress; `alive` alone is a heartbeat.
 * @typedef {{ progress?: number | null, total?: number | null, message?: string | null, data?: unknown,
 * alive?: boolean }} PageReport
 */
/**
 * Reports of a run, in order; `dropped` were too many.
 * @typedef {{ room: string, run: string, seq: number, reports: Array<PageReport>, dropped?: number }}
 * Progressed
 */
/**
 * A run waits for a person in its tab, or (no message) no more.
 * @typedef {{ room: string, run: string, message?: string | null }} Asking
 */
/**
 * A line that a run logged.
 * @typedef {{ room: string, run: string, text: string, level?: string }} Said
 */
/**
 * What a tool threw; `code` and `category` are its own words.
 * @typedef {{ name?: string, message?: string, code?: string, category?: string, retryable?: boolean,
 * retryAfterMs?: number | null }} PageError
 */
/**
 * How a run ended: a value (none: undefined) or an error. Sent again until it is settled.
 * @typedef {{ room: string, run: string, seq: number, value?: unknown, error?: PageError | null, aborted?:
 * boolean }} Ended
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
 * The first frame: prove that you know the key.
 * @typedef {{ nonce: string }} Challenge
 */
/**
 * A plugin, ready to run: the SDK, then its files, two scripts of one world; `key` names it.
 * @typedef {{ name: string, hash: string, key: string, matches: Array<string>, excludes?: Array<string>,
 * body?: string, files?: string }} Body
 */
/**
 * The browser is known; its runs are kept or must be aborted, and these plugins are to be run.
 * @typedef {{ epoch: string, keep?: Array<string>, abort?: Array<string>, plugins?: Array<Body> }} Welcome
 */
/**
 * The extension is to load itself anew: its files are newer now.
 * @typedef {object} Reload
 */
/**
 * These plugins and no others are to be run.
 * @typedef {{ plugins: Array<Body> }} Plugins
 */
/**
 * Run a tool.
 * @typedef {{ room: string, run: string, tool: string, input: unknown }} Dispatch
 */
/**
 * Stop a run.
 * @typedef {{ room: string, run: string, reason?: string }} Cancel
 */
/**
 * The end of a run has arrived; nothing of it need be kept.
 * @typedef {{ room: string, run: string }} Settled
 */
/**
 * Load a tab anew.
 * @typedef {{ tab: string }} TabReload
 */
/**
 * What the side panel shows: live calls and open questions.
 * @typedef {{ calls?: Array<CallView & { tab?: string }>, questions?: Array<QuestionView>, tabs?:
 * Array<PanelTab> }} PanelState
 */
/**
 * What came of an answer or a stop.
 * @typedef {{ about: string, error?: string }} PanelSaid
 */
/**
 * What was answered, by whom and when.
 * @typedef {{ action: string, content: unknown, by: string, at: number, surface: string, who: string | null
 * }} AnswerView
 */
/**
 * What a reviewer may decide.
 * @typedef {{ decision: string, title: string }} Choice
 */
/**
 * One text before and after; both are empty where it is too long to compare.
 * @typedef {{ before: string, after: string }} Change
 */
/**
 * What is other than `at` that time; nothing where it is the same.
 * @typedef {{ at: number, definition: Change | null, arguments: Change | null }} Changed
 */
/**
 * A question, and the answer once there is one.
 * @typedef {{ id: string, call: string, tool: string, key: string, kind: string, message: string, asked:
 * number, expires: number, schema?: unknown, params?: unknown, answer?: AnswerView, server?: string, caller?:
 * string, to?: string | null, arguments?: unknown, why?: string, choices?: Array<Choice>, source?: string,
 * changed?: Changed | null, digest?: string }} QuestionView
 */
/**
 * What a tool returned.
 * @typedef {{ content: unknown, structured: unknown, is_error: boolean }} ResultView
 */
/**
 * Progress as the tool said it: numbers and a message. `source` is "engine" for a notice.
 * @typedef {{ at: number, progress?: number | null, total?: number | null, message?: string | null, source?:
 * string }} Reading
 */
/**
 * Why a call did not end well; every field is there.
 * @typedef {{ message: string, category: string, code: string, retryable: boolean, retry_after_s: number |
 * null, clock: string | null, elapsed_s: number, last: Reading | null, side_effects: string, trace: string }}
 * FailureView
 */
/**
 * Somebody, or a clock, wants the call to stop.
 * @typedef {{ at: number, by: string, reason: string, who?: string }} CancelRequested
 */
/**
 * A reading taken into the history; `left_out` counts those between it and the one before.
 * @typedef {{ call: string, number: number, reading: Reading, left_out?: number }} Sample
 */
/**
 * Something slows what it runs on, or stops it, as a hidden tab does; no `by`: no more.
 * @typedef {{ at: number, by?: string, hint?: string }} Hindered
 */
/**
 * The seconds that a call still takes: at least, and at most.
 * @typedef {{ low_s: number, high_s: number }} Eta
 */
/**
 * How many calls a call has made, how many of them live, and how many did not end well.
 * @typedef {{ total: number, live: number, failed: number }} Children
 */
/**
 * A call. What may be unset is left out of the history's lines, or of all but the full view.
 * @typedef {{ id: string, tool: string, server: string, caller: string, state: string, outcome: string |
 * null, progress: number | null, total: number | null, message: string | null, opened: number, started:
 * number | null, finished: number | null, elapsed_s: number, waiting?: string | null, questions?:
 * Array<QuestionView>, attempt?: number, seq?: number, readings?: number, arguments?: unknown, limits?:
 * Record<string, number | null>, result?: ResultView | null, failure?: FailureView | null, cancel?:
 * CancelRequested | null, partials?: Array<unknown>, settled?: Array<QuestionView>, samples?: Array<Sample>,
 * stalled?: boolean, detached?: boolean, task?: boolean, approved?: string, hindered?: Hindered | null,
 * rerun_of?: string | null, eta?: Eta | null, rate?: number | null, reported?: number | null, parent?: string
 * | null, children?: Children | null, trace?: string | null, cpu_s?: number, redacted?: Array<string> }}
 * CallView
 */
/**
 * A tab of the panel's own browser: its short key, the browser's id, whether tools can run there.
 * @typedef {{ key: string, tab: string, state: string, why?: string, tools?: number }} PanelTab
 */
/**
 * @typedef {{ method: "link.proof", params: Proof } | { method: "link.hello", params: Hello } | { method:
 * "ping", params: Ping } | { method: "tab.opened", params: RoomOpened } | { method: "tab.tools", params:
 * RoomTools } | { method: "tab.ready", params: RoomReady } | { method: "tab.state", params: RoomState } | {
 * method: "tab.gone", params: RoomGone } | { method: "tab.list", params: TabList } | { method:
 * "tool.progress", params: Progressed } | { method: "tool.asking", params: Asking } | { method: "tool.log",
 * params: Said } | { method: "tool.result", params: Ended } | { method: "panel.watch", params: PanelWatch } |
 * { method: "panel.cancel", params: PanelCancel } | { method: "panel.answer", params: PanelAnswer }}
 * FromBrowser
 */
/**
 * @typedef {{ method: "link.challenge", params: Challenge } | { method: "link.proof", params: Proof } | {
 * method: "link.welcome", params: Welcome } | { method: "link.reload", params: Reload } | { method: "ping",
 * params: Ping } | { method: "plugin.sync", params: Plugins } | { method: "tool.dispatch", params: Dispatch }
 * | { method: "tool.cancel", params: Cancel } | { method: "tool.settled", params: Settled } | { method:
 * "tab.reload", params: TabReload } | { method: "panel.state", params: PanelState } | { method: "panel.said",
 * params: PanelSaid }} ToBrowser
 */
