import type { DropReason } from '../telemetry/dropped-rows.ts'
import type { Facts, Problem } from './snapshot.ts'
import { clockTime, countOf, span } from './words.js'

/** If no row was dropped for so long, the problem is over, milliseconds. */
const OVER_MS = 60_000

/**
 * Words for a problem, by the reason for dropped rows. Dropped rows of a flooding account are not a
 * problem.
 */
const WORDS: Partial<Record<DropReason, { rank: 1 | 3; why: string; todo: string }>> = {
  postgres: {
    rank: 1,
    why: 'Postgres does not accept the rows, or accepts them too slowly',
    todo: 'Check its disk, its load and whether it is read-only; the log of a process shows the reason ("rows of the log of calls").',
  },
  size: {
    rank: 3,
    why: "the day's part of CALL_LOG_MEGABYTES is used up",
    todo: 'Raise CALL_LOG_MEGABYTES or lower CALL_LOG_DAYS. The next day (UTC) has its own part.',
  },
}

/**
 * Problems if ended calls have no row in the log of calls, so that nobody can look them up, or if
 * rows wait because Postgres answers and accepts no writes.
 *
 * @param isExplained whether another line says that Postgres accepts no writes
 */
export function callLogProblems({ processes, at, stores: { postgres } }: Facts, isExplained: boolean): Problem[] {
  const reported = (processes ?? []).flatMap((process) => process.dropped ?? [])
  const waiting = reported.filter(({ reason }) => reason === 'waiting').reduce((sum, { rows }) => sum + rows, 0)
  const dropped = reported.flatMap(({ reason, ...rest }) => (reason === 'waiting' ? [] : [{ reason, ...rest }]))
  return waiting === 0 || !postgres || isExplained
    ? droppedProblems(dropped, at)
    : [waitingProblem(waiting), ...droppedProblems(dropped, at)]
}

function waitingProblem(rows: number): Problem {
  return {
    ...{ rank: 1, label: 'Call log', slug: null, runbook: 'call-log', endedAt: null },
    text: `Postgres does not accept the rows of ${countOf(rows, 'ended call')} for the log of calls`,
    callers:
      'Calls are not affected, but nobody can look these calls up. If Postgres accepts no writes at all, log-ins, new keys and changes by operators get 503.',
    todo: 'Check its disk and whether it is read-only; the log of a process shows the reason ("failed to write the log of calls").',
  }
}

function droppedProblems(dropped: { reason: DropReason; rows: number; lastAt: number }[], at: number): Problem[] {
  return [...Map.groupBy(dropped, ({ reason }) => reason)].flatMap(([reason, all]): Problem[] => {
    const words = WORDS[reason]
    if (!words) return []
    const lastAt = Math.max(...all.map((one) => one.lastAt))
    const rows = all.reduce((sum, one) => sum + one.rows, 0)
    const problem = {
      ...{ label: 'Call log', slug: null, runbook: 'call-log' },
      text: `${countOf(rows, 'ended call')} ${rows === 1 ? 'has' : 'have'} no row in the log of calls: ${words.why}`,
    }
    if (at - lastAt < OVER_MS) {
      const callers = 'Calls are not affected, but nobody can look these calls up.'
      return [{ ...problem, rank: words.rank, callers, todo: words.todo, endedAt: null }]
    }
    const text = `${problem.text}; the last at ${clockTime(lastAt)} UTC, ${span(at - lastAt)} ago`
    const callers = 'It is over: ended calls have rows again.'
    return [{ ...problem, text, rank: 3, callers, todo: 'No action needed.', endedAt: lastAt }]
  })
}
