import type { PausedMode } from '../catalog/catalog.ts'
import type { LastFailure } from '../health/health-view.ts'
import type { HealthStatus } from '../health/score.ts'
import type { DroppedLately } from '../telemetry/dropped-rows.ts'
import type { KnownApis } from '../telemetry/known-apis.ts'

/**
 * The state of the whole fleet at one time. Times are milliseconds. Null means "not known":
 * something that could not be read is never shown as zero or as healthy.
 */
export interface Snapshot {
  at: number
  /** What needs an operator, the gravest problem first. */
  problems: Problem[]
  /** The state of the whole service in one sentence. */
  headline: Headline
  upstreams: UpstreamRow[]
  /** What callers of all APIs got in the last sixty seconds. */
  lastMinute: Outcomes | null
  lastHour: LastHour | null
  errors: { slug: string; code: string; count: number }[] | null
  accounts: AccountRow[] | null
  processes: ProcessRow[] | null
  stores: Stores
  /**
   * Why no process of this version is ready, in the words of /readyz. A store that does not answer
   * is in `stores` instead.
   */
  unready: string[]
  /**
   * Since when Postgres has not accepted usage, in the time of Redis; null if it accepts usage, or
   * if this is unknown.
   */
  usageFailingSince: number | null
  /**
   * Number of accounts whose live calls wait for approval; null if no approval is needed, or if
   * this is unknown.
   */
  unapproved: number | null
  /**
   * Number of stored secrets that still need an earlier value of ENCRYPTION_KEY; null if it has
   * only one value, or if this is unknown.
   */
  sealedEarlier: number | null
  changes: ChangeRow[] | null
  audit: AuditRow[] | null
}

export interface Headline {
  /** Colour of the state label: `Down`, `Degraded`, `Healthy`, `Unknown`. */
  state: string
  /** Text of the state label. */
  label: string
  text: string
}

export interface UpstreamRow {
  slug: string
  name: string
  enabled: boolean
  /**
   * Whether an operator switched the API off. Nobody can call it, so its other settings do not
   * matter.
   */
  isSwitchedOff: boolean
  /** Whether the source accepts a key of the operator. */
  takesKey: boolean
  /** Whether a key is stored that cannot be decrypted. */
  isKeyUnreadable: boolean
  /**
   * The rule of the source about contacts and what `CONTACT` would give, if it is not set; null:
   * nothing.
   */
  lackedContact: string | null
  /** What happens to calls while the API is paused; null while it runs. */
  paused: PausedMode | null
  health: HealthRow | null
  queue: QueueRow | null
  cap: CapRow | null
  recent: RecentCalls | null
  /**
   * Calls in each minute of the last hour, the oldest first, and how many reached the upstream;
   * null if there were no calls, or if this is unknown.
   */
  hour: { calls: number[]; failed: number[]; sent: number[] } | null
}

export interface HealthRow {
  status: HealthStatus
  score: number
  since: number | null
  cause: string | null
  /** When the last attempt or probe ended. Null: there was none, so the status says nothing. */
  checkedAt: number | null
  /** Null if there was no failure, or if a later attempt succeeded. */
  lastFailure: LastFailure | null
  /** When the last successful attempt ended; null if none is known. */
  lastOkAt: number | null
  /**
   * The fallback source that answers now, because the source is down or limits the gateway; null if
   * the source itself answers, or if nothing does.
   */
  answeredBy: string | null
  /** Time until the breaker's next half-open attempt; null while the breaker is closed. */
  halfOpenInMs: number | null
}

export interface QueueRow {
  waiting: number
  active: number
  delayed: number
  failed: number
  oldestMs: number
  isPaused: boolean
}

export interface CapRow {
  concurrency: number
  underWay: number
  nextSlotMs: number
  /** Until when the source itself limits the gateway; null while it does not. */
  limitedUntil: number | null
  rates: { max: number; seconds: number; left: number }[]
}

/** Calls by outcome. */
export interface Outcomes {
  /** Answered calls, including "not found" answers of the upstream. */
  answered: number
  /** Calls that were refused because of the request (4xx). */
  refused: number
  /** Calls that failed because of the upstream or the gateway (5xx). */
  failed: number
}

/** What callers of one API got recently. */
export interface RecentCalls extends Outcomes {
  /** Calls of the last five minutes, by code. */
  codes: Record<string, number>
  /** When a call last ended with each of these codes, exact to ten seconds. */
  lastAt: Record<string, number>
  /** When a call was last answered, exact to ten seconds; null if none was. */
  answeredAt: number | null
  upstreamP95: number | null
  /** Calls of the last sixty seconds, by code. */
  lastMinute: Record<string, number>
}

/**
 * Values by step, the oldest first. A step is a minute in the last hour, and a quarter of an hour
 * in the last day.
 */
export interface LastHour {
  at: number[]
  answered: number[]
  refused: number[]
  failed: number[]
  queueP50: (number | null)[]
  queueP95: (number | null)[]
  upstreamP50: (number | null)[]
  upstreamP95: (number | null)[]
}

/** An account's calls in the last hour. */
export interface AccountRow {
  id: string
  /** Null if Postgres does not know the account, or does not answer. */
  email: string | null
  calls: number
  limited: number
  refused: number
  failed: number
}

export interface ProcessRow {
  kind: string
  host: string
  pid: number
  startedAt: number
  upMs: number
  busy: number
  lagMs: number
  memoryBytes: number
  inFlight: number
  /** Slugs of the upstreams that a worker serves; null: all, or the process is not a worker. */
  serves: string[] | null
  /** The APIs that the process has loaded, with the digests of their documents; null if unknown. */
  apis: KnownApis | null
  /**
   * The first errors of changed documents that the process did not load; absent if there are none.
   */
  refused?: string[]
  /** Calls without a row in the log of calls; absent if there were none lately. */
  dropped?: DroppedLately[]
}

export interface Stores {
  redis: RedisState | null
  postgres: { bytes: number; connections: number; latencyMs: number } | null
}

export interface RedisState {
  usedBytes: number
  maxBytes: number
  latencyMs: number
  clients: number
  opsPerSecond: number
  /** Its `maxmemory-policy`; undefined if Redis does not tell it. */
  evictionPolicy: string | undefined
  /** Whether Redis writes an append-only file; undefined if it does not tell. */
  hasFile: boolean | undefined
  /** Whether Redis could not write that file lately. It then refuses writes. */
  isFileFailing: boolean
  /** Whether it is a replica, for example after a failover. It then refuses writes. */
  isReplica: boolean
  /** Whether its memory is used up. It then refuses writes, because it evicts nothing. */
  isFull: boolean
}

export interface ChangeRow {
  slug: string
  at: number
  from: string
  to: string
  cause: string
  code: string
  score: number
}

/** An act of an operator. */
export interface AuditRow {
  at: number
  actor: string
  action: string
  subject: string
}

/** Something that needs an operator, in words. */
export interface Problem {
  /**
   * 0: callers fail now; 1: some callers may fail, or an operator decided it; 2: it may get worse;
   * 3: for information.
   */
  rank: 0 | 1 | 2 | 3
  /** One or two words, such as `Down` or `Cap used up`. */
  label: string
  /** The API with the problem; null for the whole service. */
  slug: string | null
  /** What is wrong, and its cause if it is known. */
  text: string
  /** What callers get meanwhile. */
  callers: string
  /** What the operator should do. */
  todo: string
  /** Its runbook: an anchor on the console's page /runbooks. */
  runbook: string
  /**
   * When a problem that is over was last seen, milliseconds since the epoch; null if it continues.
   */
  endedAt: number | null
}

/** A problem that continues. */
export type Present = Omit<Problem, 'endedAt'>

/** Everything about the fleet that is read before problems are found. */
export type Facts = Pick<
  Snapshot,
  'at' | 'upstreams' | 'processes' | 'stores' | 'unready' | 'unapproved' | 'sealedEarlier' | 'usageFailingSince'
>
