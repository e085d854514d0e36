import { callLogProblems } from './call-log-problems.ts'
import { shareOf, shareWords } from './failure-share.ts'
import { healthProblems } from './health-problems.ts'
import { processProblems } from './process-problems.ts'
import { refusalProblems, serviceProblems } from './refusal-problems.ts'
import type { RedisState, Snapshot, UpstreamRow } from './snapshot.ts'
import { countOf, span } from './words.js'

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

/** What is known of the fleet before the problems are found. */
export type Facts = Pick<
  Snapshot,
  'at' | 'upstreams' | 'processes' | 'stores' | 'unready' | 'unapproved' | 'sealedEarlier' | 'usageFailingSince'
>

/**
 * Usage that comes later than this is said, milliseconds: a restart of Postgres is over by then.
 */
const USAGE_FAILING_MS = 5_000

/** Accounts that wait for approval are counted up to this many. */
export const UNAPPROVED_MAX = 100

/** Stored secrets that an earlier ENCRYPTION_KEY sealed are counted up to this many. */
export const SEALED_EARLIER_MAX = 10_000

/** A problem of now. */
export type Present = Omit<Problem, 'endedAt'>

/**
 * Everything that needs an operator, gravest first, and what is over last. What is not known is a
 * problem too, never silence.
 */
export function findProblems(facts: Facts): Problem[] {
  const { at, stores, upstreams } = facts
  const isRedisFull = stores.redis?.isFull === true || stores.redis?.isFileFailing === true
  const present: Present[] = [
    ...storeProblems(facts),
    ...readinessProblems(facts),
    ...usageProblems(facts),
    ...processProblems(facts),
    ...networkProblems(facts),
    ...upstreams.flatMap((row) => upstreamProblems(row, facts)),
    ...approvalProblems(facts),
    ...encryptionProblems(facts),
  ]
  const problems = [
    ...serviceProblems(upstreams, at),
    ...present.map((problem) => ({ ...problem, endedAt: null })),
    ...upstreams.flatMap((row) => refusalProblems(row, { at, isRedisFull })),
    ...callLogProblems(facts),
  ]
  return problems.sort((a, b) => Number(a.endedAt !== null) - Number(b.endedAt !== null) || a.rank - b.rank)
}

function storeProblems({ stores: { redis, postgres } }: Facts): Present[] {
  const problems: Present[] = []
  if (!redis) {
    problems.push({
      rank: 0,
      label: 'Redis',
      slug: null,
      text: 'does not answer; health, queues and caps are unknown',
      callers: 'Callers get 503 DEPENDENCY_UNAVAILABLE.',
      todo: 'Check its process, its memory and the network to it.',
      runbook: 'redis-away',
    })
  } else {
    problems.push(...redisProblems(redis))
  }
  if (!postgres) {
    problems.push({
      rank: 0,
      label: 'Postgres',
      slug: null,
      text: 'does not answer; changes of health and of operators are unknown',
      callers: 'Keys in use go on for a minute; log-ins and new keys get 503 DEPENDENCY_UNAVAILABLE.',
      todo: 'Check its process, its disk and its connection limit.',
      runbook: 'postgres-away',
    })
  }
  return problems
}

const MORE_MEMORY = 'Give it more memory, or move stored answers with CACHE_REDIS_URL.'

function redisProblems(redis: RedisState): Present[] {
  const { usedBytes, maxBytes, evictionPolicy, hasFile, isFileFailing, isFull } = redis
  const found: (Omit<Present, 'label' | 'slug'> & { label?: string })[] = []
  if (isFileFailing) {
    found.push({
      rank: 0,
      text: 'cannot write its append-only file and refuses writes',
      callers: 'Callers get 503 OVERLOADED.',
      todo: 'Check its disk.',
      runbook: 'redis-disk',
    })
  }
  if (isFull) {
    found.push({
      rank: 0,
      label: 'Redis full',
      text: 'its memory is used up, and it refuses writes',
      callers: 'Callers get 503 OVERLOADED.',
      todo: MORE_MEMORY,
      runbook: 'redis-memory',
    })
  } else if (maxBytes > 0 && usedBytes > maxBytes * 0.9) {
    found.push({
      rank: 1,
      text: `uses ${Math.round((usedBytes / maxBytes) * 100)} % of its memory`,
      callers: 'When it is full, callers get 503 OVERLOADED.',
      todo: MORE_MEMORY,
      runbook: 'redis-memory',
    })
  }
  if (maxBytes > 0 && evictionPolicy !== undefined && evictionPolicy !== 'noeviction') {
    found.push({
      rank: 1,
      text: `throws keys away when it is full: its maxmemory-policy is ${evictionPolicy}`,
      callers: 'Then calls are lost, and caps and limits are forgotten.',
      todo: 'Set maxmemory-policy to noeviction.',
      runbook: 'redis-settings',
    })
  }
  if (hasFile === false) {
    found.push({
      rank: 2,
      label: 'Redis file',
      text: 'keeps nothing on disk: appendonly is off',
      callers: 'When it restarts, calls that wait and kept results are lost, and limits begin anew.',
      todo: 'Set appendonly to yes.',
      runbook: 'redis-settings',
    })
  }
  return found.map((problem) => ({ label: 'Redis', ...problem, slug: null }))
}

function readinessProblems({ unready }: Facts): Present[] {
  return unready.map((text) => ({
    rank: 0,
    label: 'Not ready',
    slug: null,
    text: `No process of this version is ready: ${text}`,
    callers: 'Balancers send no calls to API nodes that are not ready; what needs the missing part fails.',
    todo: 'Do what the line says; /readyz of each process says it too.',
    runbook: 'not-ready',
  }))
}

/**
 * A Postgres that is full or read-only answers all the same. If it does not answer, the line says
 * so.
 */
function usageProblems({ at, usageFailingSince, stores: { postgres } }: Facts): Present[] {
  if (usageFailingSince === null || !postgres || at - usageFailingSince < USAGE_FAILING_MS) return []
  return [
    {
      rank: 1,
      label: 'Usage',
      slug: null,
      text: `Postgres has not taken the usage of calls for ${span(at - usageFailingSince)}`,
      callers:
        'Calls go on. Usage pages stand still; if Postgres takes no writes at all, log-ins and new keys get 503.',
      todo: 'Check its disk and whether it is read-only; the log of an API node says why ("failed to write usage").',
      runbook: 'usage',
    },
  ]
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
      todo: 'Approve or disable each: `npm run operator -- users --unapproved` lists them, newest first.',
      runbook: 'approval',
    },
  ]
}

/** While ENCRYPTION_KEY is replaced: whether its earlier value is still needed. */
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
        ? 'Keep the earlier value: the probe process seals stored secrets anew each minute.'
        : 'If the others are earlier values, take them out; if the last value is the next, put it first.',
      runbook: 'encryption-keys',
    },
  ]
}

/** How many upstreams must fail in the same way before it is likely to be this side. */
const COMMON_MIN = 3

/**
 * Names, connections or handshakes that fail for most upstreams at once: it is this machine's
 * network.
 */
function networkProblems({ upstreams }: Facts): Present[] {
  const checked = upstreams.filter(({ enabled, health }) => enabled && health !== null && health.checkedAt !== null)
  const unreached = checked.filter(isUnreached)
  if (unreached.length < COMMON_MIN || unreached.length * 2 < checked.length) return []
  const words = unreached[0]?.health?.lastFailure?.words ?? ''
  return [
    {
      rank: 0,
      label: 'Network',
      slug: null,
      text: `${unreached.length} of ${checked.length} APIs cannot be reached (${words})`,
      callers: 'Callers get 502 from most APIs; stored answers and test keys work.',
      todo: "Check this machine's network, DNS and outgoing firewall before the APIs themselves.",
      runbook: 'network',
    },
  ]
}

function isUnreached({ health }: UpstreamRow): boolean {
  return health !== null && health.status !== 'Healthy' && health.lastFailure?.isNetwork === true
}

function upstreamProblems(row: UpstreamRow, { at }: Facts): Present[] {
  const { slug, enabled, isSwitchedOff, queue, paused } = row
  const problems: Present[] = [...healthProblems(row, at)]
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
      todo: 'Resume it when the reason is gone.',
      runbook: 'paused',
    })
  }
  if (enabled && row.lackedContact !== null) {
    problems.push({
      rank: 3,
      label: 'No contact',
      slug,
      text: row.lackedContact,
      callers: 'Callers wait longer if many call, or get 503 UPSTREAM_CAP_EXHAUSTED sooner.',
      todo: 'Set CONTACT to a mail or web address of yours; it goes into the User-Agent.',
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
        ? 'Calls go without it, under the caps of calls without a key.'
        : 'Callers get 503 API_NOT_ENABLED.',
      todo: 'Add the former secret to ENCRYPTION_KEY after the present one, or set the key again.',
      runbook: 'key-unreadable',
    })
  }
  return problems
}
