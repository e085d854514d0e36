import { capWords, codesOf, KINDS, type Kind, limitWords, SERVICE_KINDS } from './failure-kinds.ts'
import { isMany, isOver, isQuiet, OF_THE_SOURCE, type Share, shareOf, shareWords, sumOf } from './failure-share.ts'
import type { Problem, RecentCalls, UpstreamRow } from './snapshot.ts'
import { clockTime, countOf, span } from './words.js'

/** Codes of decisions of operators. Each decision has a line of its own. */
const DECIDED = new Set(['API_PAUSED', 'API_NOT_ENABLED'])

const SERVICE_CODES = new Set(SERVICE_KINDS.flatMap(({ codes }) => codes))

/** Problems of the service itself, over all APIs, that callers noticed recently. */
export function serviceProblems(upstreams: UpstreamRow[], at: number): Problem[] {
  return SERVICE_KINDS.flatMap(({ codes, label, runbook, why, todo }): Problem[] => {
    const shares = upstreams.map((row) => shareOf(codes, row))
    const { count, all } = sumOf(shares)
    if (!isMany({ count, all }) && !shares.some((share) => share.isMany)) return []
    const lastAt = Math.max(...shares.map((share) => share.lastAt))
    const problem = {
      ...{ label, slug: null, runbook, todo, callers: `These callers get 503 ${codes.join()}.` },
      text: `${shareWords({ count, all }, 'failed')}: ${why}`,
    }
    return [isQuiet(lastAt, at) ? ended(problem, { codes, count, lastAt, at }) : { ...problem, rank: 0, endedAt: null }]
  })
}

/**
 * Problems that callers of an API noticed recently, and its cap while it is used up.
 *
 * @param explainedCodes codes whose cause another line explains, such as OVERLOADED if Redis is
 *   full or cannot write, and DEADLINE_EXCEEDED if no worker serves the API
 */
export function refusalProblems(
  row: UpstreamRow,
  { at, explainedCodes }: { at: number; explainedCodes: ReadonlySet<string> },
): Problem[] {
  const { enabled, recent } = row
  if (!enabled || recent === null) return []
  const kinds = KINDS.filter(({ codes, isFor }) => {
    if (isFor?.(row, recent) === false) return false
    if (codes.some((code) => explainedCodes.has(code))) return false
    // While the API's health shows a failure of its source, the line about its health says how many
    // calls fail.
    return codes !== OF_THE_SOURCE || row.health?.status === 'Healthy'
  })
  const problems = kinds.flatMap((kind): Problem[] => {
    const share = shareOf(kind.codes, row)
    return share.isMany ? [problemOf(kind, { row, recent, share, at })] : []
  })
  const mixed = mixedFailures(kinds, { row, recent, at, hasProblem: problems.some(({ rank }) => rank === 0) })
  if (mixed) problems.push(mixed)
  const isReported = (anchor: string): boolean => problems.some((one) => one.runbook === anchor && one.endedAt === null)
  if (row.cap?.limitedUntil) {
    if (!isReported('upstream-limited')) problems.push(limited(row))
  } else if (isUsedUp(row) && !isReported('cap-used-up') && hasTraffic(row)) {
    problems.push(usedUp(row))
  }
  return problems
}

interface Seen {
  row: UpstreamRow
  recent: RecentCalls
  at: number
}

function problemOf(kind: Kind, { row, recent, share, at }: Seen & { share: Share }): Problem {
  const { codes, label, runbook, became, why, callers, todo, isGone } = kind
  const problem = {
    ...{ label, slug: row.slug, runbook, callers: callers(row), todo: todo(row) },
    text: `${row.slug}: ${shareWords(share, became)}: ${why(row, recent)}`,
  }
  return isOver(row, share, { at, isGone })
    ? ended(problem, { codes: codes.filter((code) => recent.codes[code]), ...share, at })
    : { ...problem, rank: 0, endedAt: null }
}

/**
 * A problem if no code alone is frequent, but all codes together are. The most frequent code
 * decides the words.
 */
function mixedFailures(
  kinds: Kind[],
  { row, recent, at, hasProblem }: Seen & { hasProblem: boolean },
): Problem | undefined {
  const failures = Object.keys(recent.codes).filter((code) => !DECIDED.has(code) && !SERVICE_CODES.has(code))
  const known = failures.filter((code) => kinds.some(({ codes }) => codes.includes(code)))
  const share = shareOf(known, row)
  const kind = kinds.toSorted((a, b) => shareOf(b.codes, row).count - shareOf(a.codes, row).count)[0]
  if (hasProblem || !kind || !share.isMany || shareOf(kind.codes, row).isMany) return undefined
  const problem = problemOf(kind, { row, recent, share, at })
  return { ...problem, text: `${row.slug}: ${shareWords(share, 'failed')}: ${codesOf(known, recent)}` }
}

/** A problem that is over, for operators who ask what it was. */
function ended(
  problem: Omit<Problem, 'rank' | 'endedAt'>,
  { codes, count, lastAt, at }: { codes: readonly string[]; count: number; lastAt: number; at: number },
): Problem {
  const about = problem.slug === null ? '' : `${problem.slug}: `
  return {
    ...problem,
    rank: 3,
    text: `${about}${countOf(count, 'call')} got ${codes.join(', ')}, the last at ${clockTime(lastAt)} UTC, ${span(Math.max(0, at - lastAt))} ago`,
    callers: 'It is over. Calls succeed again.',
    todo: 'No action needed.',
    endedAt: lastAt,
  }
}

/** A problem if the source itself limits the gateway for a while, and few callers have noticed. */
function limited(row: UpstreamRow): Problem {
  return {
    rank: 2,
    label: 'Limited',
    slug: row.slug,
    text: `${row.slug}: ${limitWords(row)}`,
    callers: `Callers wait until then; calls that would wait too long ${
      row.health?.answeredBy ? `go to ${row.health.answeredBy}` : 'are refused with the wait in Retry-After'
    }.`,
    todo: 'No action needed unless it persists: then lower the cap.',
    runbook: 'upstream-limited',
    endedAt: null,
  }
}

function hasTraffic({ queue, recent }: UpstreamRow): boolean {
  const calls = recent === null ? 0 : recent.answered + recent.failed
  return (queue !== null && queue.waiting + queue.active > 0) || calls > 0
}

/**
 * Whether a rate has nothing left. A distant next slot is not enough, because it may have other
 * causes.
 */
function isUsedUp({ cap }: Pick<UpstreamRow, 'cap'>): boolean {
  return cap !== null && cap.nextSlotMs > 1_000 && cap.rates.some(({ left }) => left === 0)
}

/** A problem if the cap is used up but calls still get slots in time, so nobody is refused yet. */
function usedUp(row: UpstreamRow): Problem {
  const waiting = row.queue?.waiting ?? 0
  const waits = waiting > 0 ? `; ${waiting} waiting, oldest ${span(row.queue?.oldestMs ?? 0)}` : ''
  return {
    rank: 2,
    label: 'Cap used up',
    slug: row.slug,
    text: `${row.slug}: the cap is used up${capWords(row.cap)}${waits}`,
    callers: 'Callers wait for a slot; calls that would wait too long get 503 UPSTREAM_CAP_EXHAUSTED.',
    todo: 'No action needed unless it persists. In the console the link “callers” of the API shows who uses it.',
    runbook: 'cap-used-up',
    endedAt: null,
  }
}
