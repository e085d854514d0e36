import { callLogProblems } from './call-log-problems.ts'
import { shareOf, shareWords } from './failure-share.ts'
import { healthProblems } from './health-problems.ts'
import { networkProblems, unreachedGroups } from './network-problems.ts'
import { isServed, processProblems } from './process-problems.ts'
import { refusalProblems, serviceProblems } from './refusal-problems.ts'
import type { Facts, Present, Problem, UpstreamRow } from './snapshot.ts'
import { storeProblems, usageProblems } from './store-problems.ts'
import { countOf, span } from './words.js'

/** Accounts that wait for approval are counted up to this number. */
export const UNAPPROVED_MAX = 100

/** Stored secrets that an earlier ENCRYPTION_KEY sealed are counted up to this number. */
export const SEALED_EARLIER_MAX = 10_000

/**
 * Everything that needs an operator: the gravest problems first, problems that are over last. If
 * something is not known, that is reported as a problem too.
 */
export function findProblems(facts: Facts): Problem[] {
  const { at, upstreams } = facts
  const groups = unreachedGroups(facts)
  // The line of a group names the cause and the APIs, so these APIs get no line of their own.
  const isTold = new Set(groups.flat())
  const present: Present[] = [
    ...storeProblems(facts),
    ...readinessProblems(facts),
    ...usageProblems(facts),
    ...processProblems(facts),
    ...networkProblems(groups, facts),
    ...upstreams.flatMap((row) => (isTold.has(row) ? [] : healthProblems(row, at))),
    ...upstreams.flatMap(settingProblems),
    ...approvalProblems(facts),
    ...encryptionProblems(facts),
  ]
  const problems = [
    ...serviceProblems(upstreams, at),
    ...present.map((problem) => ({ ...problem, endedAt: null })),
    ...upstreams.flatMap((row) => refusalProblems(row, { at, explainedCodes: explainedCodesOf(row, facts) })),
    ...callLogProblems(
      facts,
      present.some(({ label }) => label === 'Usage'),
    ),
  ]
  return problems.sort((a, b) => Number(a.endedAt !== null) - Number(b.endedAt !== null) || a.rank - b.rank)
}

/**
 * Codes of refusals whose cause another line explains for all its APIs, so that no API repeats it.
 */
function explainedCodesOf(row: UpstreamRow, { stores, processes }: Facts): ReadonlySet<string> {
  const codes = new Set<string>()
  if (stores.redis?.isFull === true || stores.redis?.isFileFailing === true) codes.add('OVERLOADED')
  if (processes && !isServed(row, processes)) codes.add('DEADLINE_EXCEEDED')
  return codes
}

function readinessProblems({ unready }: Facts): Present[] {
  return unready.map((text) => ({
    rank: 0,
    label: 'Not ready',
    slug: null,
    text: `No process of this version is ready: ${text}`,
    callers: 'Load balancers send no calls to API nodes that are not ready; requests that need the missing part fail.',
    todo: 'Follow the instruction in the line; /readyz of each process shows it too.',
    runbook: 'not-ready',
  }))
}

function approvalProblems({ unapproved }: Facts): Present[] {
  if (!unapproved) return []
  const isOne = unapproved === 1
  return [
    {
      rank: 3,
      label: 'Approval',
      slug: null,
      text: `${unapproved === UNAPPROVED_MAX ? 'At least ' : ''}${countOf(unapproved, 'account')} ${isOne ? 'waits' : 'wait'} for approval`,
      callers: 'Their live calls get 403 FORBIDDEN; their test keys work.',
      todo: 'Approve or disable each: `operator accounts --unapproved` lists them, and so does Accounts in the console, newest first.',
      runbook: 'approval',
    },
  ]
}

/** While ENCRYPTION_KEY is being replaced: whether its earlier value is still needed. */
function encryptionProblems({ sealedEarlier }: Facts): Present[] {
  if (sealedEarlier === null) return []
  const count = `${sealedEarlier === SEALED_EARLIER_MAX ? 'at least ' : ''}${countOf(sealedEarlier, 'stored secret')}`
  const isNeeded = sealedEarlier > 0
  return [
    {
      rank: 3,
      label: 'ENCRYPTION_KEY',
      slug: null,
      text: isNeeded
        ? `has an earlier value, which ${count} still ${sealedEarlier === 1 ? 'needs' : 'need'}`
        : 'has several values, and the first value opens every stored secret',
      callers: 'Nothing changes for callers.',
      todo: isNeeded
        ? 'Keep the earlier value: the probe process reseals stored secrets with the first value every minute.'
        : 'If the other values are earlier secrets, remove them. If the last value is your next secret, move it to the front.',
      runbook: 'encryption-keys',
    },
  ]
}

/** Settings of an API that operators changed, and settings that are missing. */
function settingProblems(row: UpstreamRow): Present[] {
  const { slug, enabled, isSwitchedOff, queue, paused } = row
  const problems: Present[] = []
  if (paused !== null && !isSwitchedOff) {
    const waits =
      queue !== null && queue.waiting > 0 ? `; ${queue.waiting} waiting, oldest ${span(queue.oldestMs)}` : ''
    const refused = shareOf(['API_PAUSED'], row)
    problems.push({
      rank: paused === 'refuse' && refused.isMany ? 0 : 1,
      label: 'Paused',
      slug,
      text: `${slug} is paused by an operator${waits}${refused.isMany ? `; ${shareWords(refused, 'were refused')}` : ''}`,
      callers:
        paused === 'refuse'
          ? 'Callers get 503 API_PAUSED.'
          : 'Callers wait, and get 503 DEADLINE_EXCEEDED at their deadline.',
      todo: 'Resume the API when the reason for the pause is gone.',
      runbook: 'paused',
    })
  }
  if (enabled && row.lackedContact !== null) {
    problems.push({
      rank: 3,
      label: 'No contact',
      slug,
      text: row.lackedContact,
      callers: 'Callers wait longer if the source allows less, and get 502 if it blocks the gateway.',
      todo: 'Set CONTACT to your mail or web address; the gateway sends it in the User-Agent.',
      runbook: 'no-contact',
    })
  }
  if (row.isKeyUnreadable) {
    problems.push({
      rank: 1,
      label: 'Key unreadable',
      slug,
      text: `${slug}: the stored key cannot be opened; ENCRYPTION_KEY is not the secret that it was stored under`,
      callers: enabled
        ? 'The gateway sends calls without the key, under the caps for calls without a key.'
        : 'Callers get 503 API_NOT_ENABLED.',
      todo: 'Append the former secret to ENCRYPTION_KEY after the current secret, or store the key again.',
      runbook: 'key-unreadable',
    })
  }
  return problems
}
