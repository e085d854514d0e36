import type { Facts, Present, RedisState } from './snapshot.ts'
import { span } from './words.js'

/**
 * Usage that Postgres has not accepted for longer than this is reported, milliseconds. A restart of
 * Postgres takes less time.
 */
const USAGE_FAILING_MS = 5_000

/** Problems that Redis and Postgres report. */
export function storeProblems({ stores: { redis, postgres } }: Facts): Present[] {
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
      callers: 'Keys in use keep working for one to two minutes; log-ins and new keys get 503 DEPENDENCY_UNAVAILABLE.',
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
      text: `evicts keys when it is full: its maxmemory-policy is ${evictionPolicy}`,
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
      callers: 'If it restarts, waiting calls and stored results are lost, and limits start again from zero.',
      todo: 'Set appendonly to yes.',
      runbook: 'redis-settings',
    })
  }
  return found.map((problem) => ({ label: 'Redis', ...problem, slug: null }))
}

/**
 * Problems with usage. Postgres answers even if it is full or read-only. If it does not answer at
 * all, another line says so.
 */
export function usageProblems({ at, usageFailingSince, stores: { postgres } }: Facts): Present[] {
  if (usageFailingSince === null || !postgres || at - usageFailingSince < USAGE_FAILING_MS) return []
  return [
    {
      rank: 1,
      label: 'Usage',
      slug: null,
      text: `Postgres has not accepted the usage of calls for ${span(at - usageFailingSince)}`,
      callers:
        'Calls are not affected. Usage pages are not updated; if Postgres accepts no writes at all, log-ins and new keys get 503.',
      todo: 'Check its disk and whether it is read-only; the log of an API node shows the reason ("failed to write usage").',
      runbook: 'usage',
    },
  ]
}
