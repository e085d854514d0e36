import type { HealthStatus } from '../health/score.ts'

/** What the overview page shows, as of one instant. Times are milliseconds. */
export interface Snapshot {
  at: number
  upstreams: UpstreamRow[]
  lastHour: LastHour
  errors: { slug: string; code: string; count: number }[]
  processes: ProcessRow[]
  stores: Stores
  changes: ChangeRow[]
  audit: AuditRow[]
}

export interface UpstreamRow {
  slug: string
  name: string
  enabled: boolean
  status: HealthStatus
  score: number
  since: number | null
  cause: string | null
  lastCode: string | null
  /** Until the breaker's next trial. */
  trialInMs: number | null
  paused: boolean
  waiting: number
  active: number
  oldestMs: number
  cap: {
    concurrency: number
    underWay: number
    nextSlotMs: number
    rates: { max: number; seconds: number; left: number }[]
  } | null
  /** Calls in the last full minute, and over the last five the share that failed and the p95 of upstream time. */
  perMinute: number
  errorShare: number
  upstreamP95: number | null
}

/** One value per minute, oldest first. */
export interface LastHour {
  at: number[]
  ok: number[]
  failed: number[]
  queueP50: (number | null)[]
  queueP95: (number | null)[]
  upstreamP50: (number | null)[]
  upstreamP95: (number | null)[]
}

export interface ProcessRow {
  kind: string
  host: string
  pid: number
  upMs: number
  busy: number
  lagMs: number
  memoryBytes: number
  inFlight: number
}

export interface Stores {
  redis: { usedBytes: number; maxBytes: number; latencyMs: number; clients: number; opsPerSecond: number } | null
  postgres: { bytes: number; connections: number; latencyMs: number } | null
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
