import type { Problem } from './problems.ts'
import type { RecentCalls, UpstreamRow } from './snapshot.ts'
import { countOf, percent, span } from './words.js'

/** Failures of one kind in five minutes below which nothing is said: a single one happens. */
const COUNT_MIN = 3

/** Part of calls from which a failure of one kind is said, whatever else goes well. */
const SHARE_MIN = 0.05

/** The source's failures. Where they make it Degraded or Down, that is what is said. */
const OF_THE_SOURCE = ['UPSTREAM_ERROR', 'UPSTREAM_TIMEOUT', 'UPSTREAM_INVALID_RESPONSE', 'UPSTREAM_TOO_LARGE']

/** Part of calls from which failures of the source are said while it counts as healthy. */
const FAILING_PART = 0.2

/** How each failure shows, what it comes from and what helps. `text` goes on after the count. */
const KINDS: Record<string, Pick<Problem, 'rank' | 'label' | 'todo' | 'runbook'>> = {
  UPSTREAM_CAP_EXHAUSTED: {
    rank: 1,
    label: 'Cap used up',
    todo: 'See who uses it under Accounts; a key of our own, where there is one, raises the cap.',
    runbook: 'cap-used-up',
  },
  OVERLOADED: {
    rank: 1,
    label: 'Overloaded',
    todo: 'Answers take too long for the calls that come: raise its concurrency if the source allows it. Where many APIs have it, look at the memory and the disk of Redis.',
    runbook: 'overloaded',
  },
  DEADLINE_EXCEEDED: {
    rank: 1,
    label: 'Too late',
    todo: 'Check that workers are alive and what the queue waits for.',
    runbook: 'deadlines',
  },
  UPSTREAM_AUTH_FAILED: {
    rank: 1,
    label: 'Refused',
    todo: 'The source refuses the gateway and takes no key: ask it about the address of the workers and about their User-Agent (CONTACT).',
    runbook: 'refused-by-the-source',
  },
  UPSTREAM_RATE_LIMITED: {
    rank: 1,
    label: 'Limited',
    todo: 'The source allows less than our cap: lower the cap.',
    runbook: 'upstream-limited',
  },
  UPSTREAM_REDIRECT_BLOCKED: {
    rank: 1,
    label: 'Moved',
    todo: 'The source answers with a redirect that is not followed: give its new address with UPSTREAM_<SLUG>_URL.',
    runbook: 'upstream-moved',
  },
  INTERNAL_ERROR: {
    rank: 0,
    label: 'Our error',
    todo: 'Look for INTERNAL_ERROR in the log of API nodes and workers.',
    runbook: 'internal-errors',
  },
}

/** Where the source takes a key, which is then the likeliest cause. */
const RENEW_KEY =
  'The source refuses the gateway: set or renew its key with `npm run operator -- upstream <slug> --key-file F`.'

/** Failures that have nothing to do with the API that was called; `text` goes on after the count. */
const SERVICE_KINDS: Record<string, Pick<Problem, 'rank' | 'label' | 'todo' | 'runbook'>> = {
  DEPENDENCY_UNAVAILABLE: {
    rank: 1,
    label: 'Store missed',
    todo: 'Where Redis and Postgres answer here, an API node or a worker may not reach them: look at /readyz and the log of each.',
    runbook: 'store-missed',
  },
  DRAINING: {
    rank: 1,
    label: 'Cut short',
    todo: 'API nodes ended before their calls did: let them end one after the other, with time to finish.',
    runbook: 'cut-short',
  },
}

/** What callers got lately because of the service itself, over all APIs. */
export function serviceProblems(upstreams: UpstreamRow[]): Problem[] {
  const recents = upstreams.flatMap(({ recent }) => recent ?? [])
  const all = recents.reduce((sum, recent) => sum + notRefused(recent), 0)
  return Object.entries(SERVICE_KINDS).flatMap(([code, kind]): Problem[] => {
    const count = recents.reduce((sum, { codes }) => sum + (codes[code] ?? 0), 0)
    if (count < COUNT_MIN || count / all < SHARE_MIN) return []
    const text = `${countOf(count, 'call')} of the last five minutes (${percent(count / all)}) got ${code}`
    return [{ ...kind, slug: null, text, callers: `These callers get 503 ${code}.` }]
  })
}

/** Calls of which parts are taken: one account that is refused a thousand times must not hide that others fail. */
function notRefused({ answered, failed }: RecentCalls): number {
  return answered + failed
}

/**
 * What callers of an API were refused with lately, and its cap where it is used up.
 *
 * @param isRedisFull Redis has no room or cannot write, and is said as such: calls are refused with OVERLOADED for that
 */
export function refusalProblems(row: UpstreamRow, { isRedisFull }: { isRedisFull: boolean }): Problem[] {
  const { slug, enabled, recent } = row
  if (!enabled || recent === null) return []
  const all = notRefused(recent)
  const problems = Object.entries(KINDS).flatMap(([code, kind]): Problem[] => {
    const count = recent.codes[code] ?? 0
    if (count < COUNT_MIN || count / all < SHARE_MIN || (code === 'OVERLOADED' && isRedisFull)) return []
    const words = `${slug}: ${countOf(count, 'call')} of the last five minutes (${percent(count / all)}) got ${code}`
    const todo = code === 'UPSTREAM_AUTH_FAILED' && row.takesKey ? RENEW_KEY : kind.todo
    return [{ ...kind, slug, text: words + detailOf(code, row, recent), callers: callersOf(code, row), todo }]
  })
  problems.push(...failing(row, recent))
  const isSaid = (anchor: string): boolean => problems.some(({ runbook }) => runbook === anchor)
  const isUsedUp = (row.cap?.nextSlotMs ?? 0) > 1_000
  if (row.cap?.limitedUntil) {
    if (!isSaid('upstream-limited')) problems.push(limited(row))
  } else if (isUsedUp && !isSaid('cap-used-up') && hasTraffic(row)) {
    problems.push(usedUp(row))
  }
  return problems
}

/** The source itself said that it takes no request for a while. */
function limited(row: UpstreamRow): Problem {
  return {
    rank: 2,
    label: 'Limited',
    slug: row.slug,
    text: `${row.slug}${limitWords(row)}`,
    callers: 'Callers get 502 UPSTREAM_RATE_LIMITED with the wait in Retry-After.',
    todo: 'Nothing, unless it lasts: then lower the cap.',
    runbook: 'upstream-limited',
  }
}

function limitWords({ cap }: UpstreamRow): string {
  if (!cap?.limitedUntil) return ''
  return `: its source limits us until ${new Date(cap.limitedUntil).toISOString().slice(11, 19)} UTC`
}

/** Calls fail at the source and its health does not show it: it fails for some callers' parameters, or for too few calls. */
function failing({ slug, health }: UpstreamRow, recent: RecentCalls): Problem[] {
  const codes = OF_THE_SOURCE.filter((code) => (recent.codes[code] ?? 0) > 0)
  const count = codes.reduce((sum, code) => sum + (recent.codes[code] ?? 0), 0)
  const part = count / notRefused(recent)
  if (health?.status !== 'Healthy' || count < COUNT_MIN || part < FAILING_PART) return []
  return [
    {
      rank: 1,
      label: 'Failing',
      slug,
      text: `${slug}: ${countOf(count, 'call')} of the last five minutes (${percent(part)}) got ${codes.join(', ')}, while it counts as healthy`,
      callers: 'These callers get 502.',
      todo: 'Probe it. Where that succeeds, see under Accounts whose calls fail: what they add to their requests may be why.',
      runbook: 'upstream-degraded',
    },
  ]
}

function hasTraffic({ queue, recent }: UpstreamRow): boolean {
  const calls = recent === null ? 0 : recent.answered + recent.failed
  return (queue !== null && queue.waiting + queue.active > 0) || calls > 0
}

/** Calls still wait for their slots: nobody is refused yet. */
function usedUp(row: UpstreamRow): Problem {
  const waiting = row.queue?.waiting ?? 0
  const waits = waiting > 0 ? `; ${waiting} waiting, oldest ${span(row.queue?.oldestMs ?? 0)}` : ''
  return {
    rank: 2,
    label: 'Cap used up',
    slug: row.slug,
    text: `${row.slug}: the cap is used up; next slot in ${span(row.cap?.nextSlotMs ?? 0)}${waits}`,
    callers: 'Callers wait for a slot; those that would wait too long get 503 UPSTREAM_CAP_EXHAUSTED.',
    todo: 'Nothing, unless it lasts; see who uses it under Accounts.',
    runbook: 'cap-used-up',
  }
}

function detailOf(code: string, row: UpstreamRow, { upstreamP95 }: RecentCalls): string {
  const { cap } = row
  if (code === 'UPSTREAM_RATE_LIMITED') return limitWords(row)
  if (code === 'UPSTREAM_CAP_EXHAUSTED' && cap) {
    const rates = cap.rates.map(({ max, seconds }) => `${max} per ${span(seconds * 1_000)}`)
    const next = cap.nextSlotMs > 0 ? `; next slot in ${span(cap.nextSlotMs)}` : ''
    return rates.length > 0 ? `; the cap is ${rates.join(', ')}${next}` : next
  }
  if (code === 'OVERLOADED' && cap && upstreamP95 !== null) {
    return `; answers take ${span(upstreamP95)} over ${countOf(cap.concurrency, 'connection')}`
  }
  return ''
}

function callersOf(code: string, { cap }: UpstreamRow): string {
  if (code === 'UPSTREAM_CAP_EXHAUSTED' && cap && cap.nextSlotMs > 0) {
    return `Callers get 503 ${code} with the wait in Retry-After.`
  }
  const status =
    code.startsWith('UPSTREAM_') && code !== 'UPSTREAM_CAP_EXHAUSTED' ? 502 : code === 'INTERNAL_ERROR' ? 500 : 503
  return `These callers get ${status} ${code}.`
}
