import { QUEUE_LENGTH_MAX } from '../caps/scripts.ts'
import { hasAnswered, OF_THE_SOURCE } from './failure-share.ts'
import type { CapRow, RecentCalls, UpstreamRow } from './snapshot.ts'
import { clockTime, countOf, span } from './words.js'

/** A kind of failure: its codes, how the console names it, why it occurs, and what helps. */
export interface Kind {
  codes: readonly string[]
  /** Whether the failures of this API are of this kind, if another kind has the same codes. */
  isFor?: (row: UpstreamRow, recent: RecentCalls) => boolean
  label: string
  runbook: string
  /** What happened to these calls, as a verb: `failed`, `were refused`. */
  became: string
  /** The cause, as a text after a colon. */
  why: (row: UpstreamRow, recent: RecentCalls) => string
  callers: (row: UpstreamRow) => string
  todo: (row: UpstreamRow) => string
  /** Whether it can be seen that the cause is gone, after no call has failed for a while. */
  isGone: (row: UpstreamRow, lastAt: number) => boolean
}

const hasQueue = ({ queue }: UpstreamRow): boolean => queue === null || queue.waiting > 0

/**
 * Whether the concurrency of a cap allows fewer calls than its rates do, because answers are slow.
 */
function isSlow({ cap }: UpstreamRow, { upstreamP95 }: RecentCalls): boolean {
  if (!cap || upstreamP95 === null) return false
  const perSecond = Math.min(...cap.rates.map(({ max, seconds }) => max / seconds))
  return (cap.concurrency * 1_000) / upstreamP95 < perSecond
}

/** If a source could have answered all recent calls in this time, it is not slow, milliseconds. */
const SOON_MS = 10_000

/**
 * Whether the source cannot be the reason for refusals: its recent calls do not fill the wait
 * queue of its cap, and it could have answered all of them within seconds.
 */
function isSourceFast({ cap, recent }: UpstreamRow): boolean {
  if (!cap || recent === null || recent.upstreamP95 === null) return false
  const all = recent.answered + recent.failed
  return all < QUEUE_LENGTH_MAX && (all * recent.upstreamP95) / cap.concurrency < SOON_MS
}

export const KINDS: Kind[] = [
  {
    codes: OF_THE_SOURCE,
    label: 'Failing',
    runbook: 'upstream-degraded',
    became: 'failed',
    why: ({ health, recent }) => health?.lastFailure?.words ?? codesOf(OF_THE_SOURCE, recent),
    callers: () => 'These callers get 502.',
    todo: () =>
      'Probe it. If the probe succeeds, look under Accounts whose calls fail: undeclared parameters of these callers may be the cause.',
    isGone: hasAnswered,
  },
  {
    codes: ['UPSTREAM_RATE_LIMITED'],
    label: 'Limited',
    runbook: 'upstream-limited',
    became: 'failed',
    why: limitWords,
    callers: () => 'These callers get 502 UPSTREAM_RATE_LIMITED with the wait in Retry-After.',
    todo: () => 'The source allows less than the cap: lower the cap.',
    isGone: (row, at) => row.cap !== null && row.cap.limitedUntil === null && hasAnswered(row, at),
  },
  {
    codes: ['UPSTREAM_CAP_EXHAUSTED'],
    isFor: isSlow,
    label: 'Overloaded',
    runbook: 'overloaded',
    became: 'were refused',
    why: ({ cap }, { upstreamP95 }) =>
      `the source answers slowly (${span(upstreamP95 ?? 0)}) and ${countOf(cap?.concurrency ?? 0, 'connection')} cannot carry more calls`,
    callers: () => 'Callers get 503 UPSTREAM_CAP_EXHAUSTED with the wait in Retry-After.',
    todo: () => 'Raise the concurrency of the API if the source allows it, or wait until the source is faster.',
    isGone: (row) => !hasQueue(row),
  },
  {
    codes: ['UPSTREAM_CAP_EXHAUSTED'],
    isFor: (row, recent) => !isSlow(row, recent),
    label: 'Cap used up',
    runbook: 'cap-used-up',
    became: 'were refused',
    why: ({ cap }) => `the cap is used up${capWords(cap)}`,
    callers: ({ cap }) =>
      `Callers get 503 UPSTREAM_CAP_EXHAUSTED${cap && cap.nextSlotMs > 0 ? ' with the wait in Retry-After' : ''}.`,
    todo: () =>
      'In the console the link “callers” of the API shows who uses it. A key of your own raises the cap if the source sells keys.',
    isGone: ({ cap }) => cap?.rates.every(({ left }) => left > 0) === true,
  },
  {
    codes: ['OVERLOADED'],
    label: 'Overloaded',
    runbook: 'overloaded',
    became: 'were refused',
    why: (row, { upstreamP95 }) =>
      row.cap && upstreamP95 !== null
        ? `answers take ${span(upstreamP95)} over ${countOf(row.cap.concurrency, 'connection')}${isSourceFast(row) ? ', so the source is not the reason' : ''}`
        : 'calls arrive faster than they are answered',
    callers: () => 'These callers get 503 OVERLOADED.',
    todo: (row) =>
      isSourceFast(row)
        ? 'Redis was short of memory or disk, or an account has too many replies on their way: the log lines of these calls at the API nodes have the reason.'
        : 'Calls arrive faster than the source answers: raise the concurrency of the API if the source allows it. If many APIs have this problem, look at the memory and the disk of Redis.',
    isGone: (row) => !hasQueue(row),
  },
  {
    codes: ['DEADLINE_EXCEEDED'],
    label: 'Too late',
    runbook: 'deadlines',
    became: 'ran out of time',
    why: ({ queue }) =>
      queue && queue.waiting > 0 ? `${queue.waiting} waiting, oldest ${span(queue.oldestMs)}` : 'their time ran out',
    callers: () => 'These callers get 503 DEADLINE_EXCEEDED.',
    todo: () => 'Check that workers are running, and why the queue waits.',
    isGone: (row) => !hasQueue(row),
  },
  {
    codes: ['UPSTREAM_AUTH_FAILED'],
    label: 'Refused',
    runbook: 'refused-by-the-source',
    became: 'failed',
    why: () => 'the source refuses the gateway',
    callers: () => 'These callers get 502 UPSTREAM_AUTH_FAILED.',
    todo: ({ takesKey }) =>
      takesKey
        ? 'The source refuses the gateway: set or renew its key with `operator upstream <slug> --key-file F`.'
        : 'The source refuses the gateway and needs no key: ask the operator of the source whether it blocks the address of the workers or their User-Agent (CONTACT).',
    isGone: hasAnswered,
  },
  {
    codes: ['UPSTREAM_REDIRECT_BLOCKED'],
    label: 'Moved',
    runbook: 'upstream-moved',
    became: 'failed',
    why: () => 'the source answers with a redirect that the gateway does not follow',
    callers: () => 'These callers get 502 UPSTREAM_REDIRECT_BLOCKED.',
    todo: () => 'Set the new address of the source with UPSTREAM_<SLUG>_URL.',
    isGone: hasAnswered,
  },
  {
    codes: ['INTERNAL_ERROR'],
    label: 'Our error',
    runbook: 'internal-errors',
    became: 'failed',
    why: () => 'a fault of the gateway',
    callers: () => 'These callers get 500 INTERNAL_ERROR.',
    todo: () => 'Look for INTERNAL_ERROR in the log of API nodes and workers.',
    isGone: () => true,
  },
]

/** Failures that do not depend on the API that was called. */
export const SERVICE_KINDS: (Pick<Kind, 'codes' | 'label' | 'runbook'> & { why: string; todo: string })[] = [
  {
    codes: ['DEPENDENCY_UNAVAILABLE'],
    label: 'Store unreachable',
    runbook: 'store-unreachable',
    why: 'Redis or Postgres did not answer an API node or a worker',
    todo: 'If Redis and Postgres answer here, an API node or a worker may not reach them: look at /readyz and the log of each process.',
  },
  {
    codes: ['DRAINING'],
    label: 'Cut short',
    runbook: 'cut-short',
    why: 'API nodes stopped before their calls had ended',
    todo: 'Stop API nodes one after another, and give each node time to finish its calls.',
  },
]

/** Which of these codes calls have ended with. */
export function codesOf(codes: readonly string[], recent: RecentCalls | null): string {
  return codes.filter((code) => recent?.codes[code]).join(', ')
}

/** Says that the source limits the gateway, with the time of the end or the source's words. */
export function limitWords({ cap, health }: UpstreamRow): string {
  const until = cap?.limitedUntil ? ` until ${clockTime(cap.limitedUntil)} UTC` : ''
  const words = health?.lastFailure ? ` (${health.lastFailure.words})` : ''
  return `its source limits the gateway${until}${until ? '' : words}`
}

/** The rates of a cap in parentheses, and when its next slot comes. */
export function capWords(cap: CapRow | null): string {
  if (!cap) return ''
  const rates = cap.rates.map(({ max, seconds }) => `${max} per ${span(seconds * 1_000)}`).join(', ')
  const next = cap.nextSlotMs > 0 ? `; next slot in ${span(cap.nextSlotMs)}` : ''
  return `${rates ? ` (${rates})` : ''}${next}`
}
