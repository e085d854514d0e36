import type { PausedMode } from '../catalog/catalog.ts'
import type { LastFailure } from '../health/health-view.ts'
import type { HealthStatus } from '../health/score.ts'
import type { DroppedLately } from '../telemetry/dropped-rows.ts'
import type { KnownApis } from '../telemetry/known-apis.ts'

/**
 * The whole fleet as of one instant. Times are milliseconds. Null is "not known": what could not be
 * read is never shown as zero or as healthy.
 */
export interface Snapshot {
  at: number
  /** What an operator should look at, gravest first. */
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
   * Why no process of this version is ready, as /readyz says it; a store that does not answer is in
   * `stores`.
   */
  unready: string[]
  /**
   * Since when Postgres has not taken the usage of calls, Redis' time; null if it does, and while
   * it is not known.
   */
  usageFailingSince: number | null
  /**
   * Accounts whose live calls wait for an operator's approval; null if none has to, and while it is
   * not known.
   */
  unapproved: number | null
  /**
   * Stored secrets that ENCRYPTION_KEY's later values still have to open; null if it has one value,
   * and while it is not known.
   */
  sealedEarlier: number | null
  changes: ChangeRow[] | null
  audit: AuditRow[] | null
}

export interface Headline {
  /** How the pill looks: `Down`, `Degraded`, `Healthy`, `Unknown`. */
  state: string
  /** What the pill says. */
  label: string
  text: string
}

export interface UpstreamRow {
  slug: string
  name: string
  enabled: boolean
  /**
   * An operator switched it off: nobody can call it, and what else is set of it matters to nobody.
   */
  isSwitchedOff: boolean
  /** The source takes a key of the operator's. */
  takesKey: boolean
  /** Operators stored a key that cannot be opened. */
  isKeyUnreadable: boolean
  /**
   * What the source asks of the operator's contact, which is not named, and what naming it would
   * give; null: nothing.
   */
  lackedContact: string | null
  /** What callers get while its queue is paused; null while it runs. */
  paused: PausedMode | null
  health: HealthRow | null
  queue: QueueRow | null
  cap: CapRow | null
  recent: RecentCalls | null
  /**
   * Calls of each minute of the last hour, oldest first, and how many of them reached the upstream;
   * null if there was none, and while it is not known.
   */
  hour: { calls: number[]; failed: number[]; sent: number[] } | null
}

export interface HealthRow {
  status: HealthStatus
  score: number
  since: number | null
  cause: string | null
  /**
   * When the last attempt or probe ended; null: it was never tried, and the status says nothing.
   */
  checkedAt: number | null
  /** Null as well if an attempt succeeded after it. */
  lastFailure: LastFailure | null
  /** When the last attempt ended that succeeded; null: none is known of. */
  lastOkAt: number | null
  /** The fallback source that answers while the source is down; null: none does. */
  answeredBy: string | null
  /** Until the breaker's next half-open attempt; null while it is closed. */
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

/** Calls by what callers got. */
export interface Outcomes {
  /** Answers, including answers that the upstream has no such item. */
  answered: number
  /** Refused because of the request: 4xx. */
  refused: number
  /** Failed because of the upstream or of the gateway: 5xx. */
  failed: number
}

/** What callers of one API got lately. */
export interface RecentCalls extends Outcomes {
  /** Over the last five minutes. */
  codes: Record<string, number>
  /** When a call last ended with each of these codes, to ten seconds. */
  lastAt: Record<string, number>
  /** When a call was last answered, to ten seconds; null: none was. */
  answeredAt: number | null
  upstreamP95: number | null
  /** Calls of the last sixty seconds by code. */
  lastMinute: Record<string, number>
}

/**
 * One value per step, a minute in the last hour and a quarter of an hour in the last day, oldest
 * first.
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
  /** Null if Postgres does not know the account or does not answer. */
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
  /** Slugs of the upstreams that a worker serves; null: all, and for other kinds. */
  serves: string[] | null
  /**
   * The APIs that it has loaded, each with the digest of its document; null if that is not known.
   */
  apis: KnownApis | null
  /** The first errors of changed documents that it did not load; absent: there are none. */
  refused?: string[]
  /** Calls that have no row in the log of calls; absent: none lately. */
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
  /** Its `maxmemory-policy`; undefined if it does not say. */
  evictionPolicy: string | undefined
  /** Whether it keeps an append-only file; undefined if it does not say. */
  hasFile: boolean | undefined
  /** It could not write that file lately, and refuses writes until it can. */
  isFileFailing: boolean
  /** Its memory is used up: it refuses writes, and evicts nothing. */
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

/** What an operator did. */
export interface AuditRow {
  at: number
  actor: string
  action: string
  subject: string
}

/** Something that an operator should look at, in words. */
export interface Problem {
  /**
   * 0: callers fail now; 1: some may, or it was decided so; 2: it may become worse; 3: to be known.
   */
  rank: 0 | 1 | 2 | 3
  /** One or two words: `Down`, `Cap used up`. */
  label: string
  /** The API it is about; null for the whole service. */
  slug: string | null
  /** What is the case, with its cause if that is known. */
  text: string
  /** What callers get meanwhile. */
  callers: string
  /** What to do about it. */
  todo: string
  /** Its runbook: an anchor of the console's page /runbooks. */
  runbook: string
  /** When trouble that is over was last seen, milliseconds since the epoch; null while it lasts. */
  endedAt: number | null
}

/** A problem of now. */
export type Present = Omit<Problem, 'endedAt'>

/** What is known of the fleet before the problems are found. */
export type Facts = Pick<
  Snapshot,
  'at' | 'upstreams' | 'processes' | 'stores' | 'unready' | 'unapproved' | 'sealedEarlier' | 'usageFailingSince'
>
