// Types that the console's modules share as globals. No browser loads this file.

type Signal<T> = (() => T) & { set: (value: T) => void; touch: () => void; peek: () => T; isRead: () => boolean };

/** The compiler's own types do not have `rawJSON` and the source of a number yet. */
interface JSON {
  parse(text: string, reviver: (key: string, value: any, context: { source: string }) => any): any;
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): boolean;
}

// The parts of an element.
type Mount = { mount: (parent: Node) => void };
type ChildValue = Node | string | number | null | undefined | false;
type Child = ChildValue | Mount | (() => ChildValue);
/** `onclick` is a listener, `.value` a property, `style.width` a style; the rest are attributes. */
type Props = { [listener: `on${string}`]: (event: any) => unknown; [name: string]: any };

// Responses of the gateway's API, as far as the console reads them.
type Json = any;
type Schema = Record<string, any>;
type Outcome = "ok" | "failed" | "refused" | "cancelled" | "timed_out" | "lost" | "uncertain";
type AnswerView = { action: string; content?: Json; by: string; at: number; surface?: string; who?: string | null };
type Change = { before: string; after: string } | null;
type FieldError = { field: string; message: string };
type Reading = {
  at: number;
  progress?: number | null;
  total?: number | null;
  message?: string | null;
  source?: string; // "below": the numbers add up those of the child calls
};

type Kind = "text" | "number" | "boolean" | "choice" | "choices" | "object" | "array" | "json";
/** A schema as a field of a form; `fields` are those of an object, `item` that of an array. */
type Field = {
  name: string;
  kind: Kind;
  title: string;
  hint: string;
  required: boolean;
  nullable: boolean;
  secret: boolean;
  schema: Schema;
  options: { value: Json; title: string }[];
  fields: Field[];
  item: Field | null;
};

type QuestionView = {
  id: string;
  key: string;
  call: string;
  tool: string;
  server: string;
  caller: string;
  kind: string;
  message: string;
  asked: number;
  expires: number;
  digest: string;
  to?: string | null;
  schema?: Schema;
  params?: Json;
  answer?: AnswerView;
  arguments?: Json;
  why?: string;
  source?: string;
  destructive?: boolean; // its author says that it may destroy something
  changed?: { at: number; definition: Change; arguments: Change } | null;
};

/** An answer that a person gave before, and how the call went on. */
type GivenAnswer = {
  call: string;
  tool: string;
  server: string;
  question: string;
  kind: string;
  message: string;
  answer: AnswerView;
  asked: number;
  arguments: Json;
  outcome: Outcome | null;
  ran_s: number | null;
};

type FailureView = {
  message: string;
  category: string;
  code: string;
  retryable: boolean;
  retry_after_s: number | null;
  clock: string | null;
  elapsed_s: number;
  last: Reading | null;
  side_effects: string;
  hint: string;
  trace: string;
};

/** A call at a gateway behind this one. */
type RemoteCall = {
  id: string;
  tool: string;
  state: string;
  outcome?: Outcome | null;
  progress?: number | null;
  total?: number | null;
  message?: string | null;
  parent?: string | null;
};
/** The clocks of a call on the wire; instants are of the gateway's clock. */
type Clocks = {
  idle_s: number | null; // null while no idle limit applies
  ceiling_s: number | null;
  answer_s: number;
  heard: number | null; // the last sign of life
  spent_s: number; // on the clock before `since`
  since: number | null; // null while the clocks stand still
  patient_idle_s?: number | null; // the idle limit that begins with the first report
  below?: string[]; // open questions of calls below it
};
type Eta = { left_s: number; low_s?: number; high_s?: number };
type Counts = { total: number; live: number; failed: number };

/** A call; optional fields are in the full view alone. */
type CallView = {
  id: string;
  tool: string;
  server: string;
  caller: string;
  state: "queued" | "running" | "cancelling" | "finished";
  outcome: Outcome | null;
  opened: number;
  started?: number | null;
  finished: number | null;
  progress: number | null;
  total: number | null;
  message: string | null;
  reported?: number | null;
  attempt?: number;
  seq?: number;
  readings?: number;
  questions?: QuestionView[];
  stalled?: boolean;
  detached?: boolean;
  task?: boolean;
  cpu_s?: number;
  hindered?: { by: string; hint?: string } | null;
  eta?: Eta | null;
  rate?: number | null;
  approved?: string;
  parent?: string | null;
  source?: string;
  remote?: RemoteCall[];
  rerun_of?: string | null;
  trace?: string | null;
  trace_url?: string;
  children?: Counts | null;
  arguments?: Json;
  redacted?: string[];
  result?: { content: Json; structured?: Json; is_error: boolean } | null;
  failure?: FailureView | null;
  partials?: Json[];
  settled?: QuestionView[];
  samples?: { reading: Reading }[];
  cancel_due?: number | null; // when a pending cancel comes
  clocks?: Clocks;
  limits?: Record<string, number | null>;
};

type StoryFact = { call: string; seq: number; fact: Fact };
type StoryReading = { call: string; number: number; reading: Reading; left_out?: number };
/** What was said in a call and in all calls below it; `calls` begins with the call itself. */
type Story = {
  calls: CallView[];
  facts: StoryFact[];
  readings: StoryReading[];
  left_out: number;
  facts_left_out: number;
  wire?: number | null; // messages on the wires of the first call, where they are recorded
};
type RunsView = { earlier: CallView | null; later: CallView | null };

type Message = { at: number; side: "caller" | "upstream" | "page"; way: "in" | "out"; message: Json };
type WireView = { recording: boolean; messages: Message[]; left_out: number };

type ToolView = {
  name: string;
  server: string;
  title: string | null;
  description: string;
  inputSchema: Schema;
  outputSchema: Schema | null;
  annotations: Record<string, any>;
  limits: Record<string, number | null>;
  concurrency: number;
  queue: number;
  approval: string;
  own: string; // its name at its server
  safe: boolean;
  isolation?: Record<string, number>;
  stats?: Stats;
  recent?: RecentRuns; // only in the list, if it is asked for
};

type RecentRuns = {
  runs: number;
  failures: number;
  p50_s: number | null;
  p95_s: number | null;
  last: number | null; // when the newest was opened
};

type Bin = [from: number, to: number, count: number];
type Stats = {
  runs: number;
  failures: number;
  p50_s: number | null;
  p95_s: number | null;
  histogram: Bin[];
  last: CallView[];
};

/** The figures of the last hour; `steps` divide it evenly. */
type ActivityView = {
  now: number;
  since: number;
  calls: number;
  failed: number;
  p95_s: number | null;
  slowest: { id: string; tool: string; took_s: number } | null;
  steps: { at: number; opened: number; running: number; failed: number; p95_s: number | null }[];
  slots?: number | null; // how many calls can run at once
};

type ServerView = { name: string; state: string; error: string; tools: number; login: string; [more: string]: Json };
type MemberView = {
  id: string;
  role: string;
  left_s: number;
  host: string;
  pid: number;
  version: string;
  url: string;
  calls: number;
  slots: number;
  draining: boolean;
  lag: number;
};
type FiguresView = { is_heard: boolean; lag: number; waiting: number; taken_over: number; skew_s: number };
type CallerView = { caller: string; live: number; calls: number; quota: Json; [more: string]: Json };
type BrowserView = { profile: string; name: string; state: string; [more: string]: Json };
type TabView = { key: string; title: string; url: string; state: string; why: string; [more: string]: Json };
type PluginView = { name: string; state: string; why: string; start: string; [more: string]: Json };

// Types of the console itself.

/** The two clocks of a call as they stand at one instant. */
type ClockReading = {
  silent_s: number;
  idle_s: number | null;
  silence_left: number; // 0 to 1
  is_silence_last: boolean; // the last quarter
  used_s: number;
  ceiling_s: number | null;
  used: number; // 0 to 1
  is_ceiling_last: boolean; // the last tenth
  ceiling_left_s: number | null;
  frozen: string; // why both stand still: asked, below, queued, cancelling, ended; empty while they run
  answer_left_s: number | null;
};

/** The newest reading of a call in a frame of changes, with its forecast. */
type CallNews = {
  call: string;
  reading: Reading | null;
  readings: number;
  heard?: number | null;
  eta?: Eta | null;
  rate?: number | null;
  stalled?: boolean;
  detached?: boolean;
  cancel_due?: number | null;
};

type Fact = { type: string; at: number; [field: string]: Json };
type Asked = { id: string; key: string; kind: string; message: string; below?: string; at: number };

/** A call, folded from its facts; it is updated in place. */
type Call = Omit<CallView, "children" | "failure" | "clocks"> & {
  parent: string | null;
  clocks: Clocks;
  children: Counts; // the calls that it made itself
  attempt: number;
  seq: number;
  readings: number;
  latest: Reading | null;
  open: Map<string, Asked>; // questions, in the order they were asked
  approval: string; // auto, allowlist, ask
  yes?: string; // whose yes let it run: user, caller
  starting?: string; // the server that must start first
  cancel?: { by: string; reason: string } | null;
  failure?: { message: string } | null;
  result_line?: string; // once it has ended well
};

/**
 * A call in the store. Signal `call` fires for facts, `reading` for readings, too; both hold the same object. `pulse`
 * fires when the clocks of a call in view go on.
 */
type Entry = {
  id: string;
  call: Signal<Call>;
  reading: Signal<Call>;
  pulse: Signal<null>;
  below: Signal<Entry[]>;
  isRemote?: boolean; // a call at a gateway behind this one, which is in no store
  remoteId?: string;
};
type OpenQuestion = Asked & Pick<Call, "tool" | "server" | "caller"> & { call: string };
type Route = { view: string; params: { id?: string; name?: string }; query: Record<string, string>; path: string };
type Session = { token: string; id: string; expires: number };
