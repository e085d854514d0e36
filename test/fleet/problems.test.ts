import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { renderPlaces } from '../../src/console/browser/render.js'
import { ERRORS } from '../../src/errors.ts'
import { outcomeClass } from '../../src/fleet/outcome-class.ts'
import { type Facts, findProblems } from '../../src/fleet/problems.ts'
import type { HealthRow, ProcessRow, RecentCalls, Snapshot, UpstreamRow } from '../../src/fleet/snapshot.ts'

const NOW = 1_700_000_000_000

const healthy: HealthRow = {
  status: 'Healthy',
  score: 100,
  since: null,
  cause: null,
  checkedAt: NOW - 1_000,
  lastFailure: null,
  answeredBy: null,
  halfOpenInMs: null,
}
const noCalls: RecentCalls = { answered: 0, refused: 0, failed: 0, codes: {}, upstreamP95: null, lastMinute: {} }

function row(slug: string, changes: Partial<UpstreamRow> = {}): UpstreamRow {
  return {
    slug,
    name: slug,
    enabled: true,
    isSwitchedOff: false,
    takesKey: false,
    isKeyUnreadable: false,
    lackedContact: null,
    paused: null,
    health: healthy,
    queue: { waiting: 0, active: 0, delayed: 0, failed: 0, oldestMs: 0, isPaused: false },
    cap: {
      concurrency: 4,
      underWay: 0,
      nextSlotMs: 0,
      limitedUntil: null,
      rates: [{ max: 10, seconds: 60, left: 10 }],
    },
    recent: noCalls,
    ...changes,
  }
}

const process_ = (kind: string): ProcessRow => ({
  kind,
  host: 'h',
  pid: 1,
  startedAt: 0,
  upMs: 1,
  busy: 0,
  lagMs: 0,
  memoryBytes: 1,
  inFlight: 0,
  serves: null,
})

const well: Facts = {
  at: NOW,
  upstreams: [row('weather'), row('trivia'), row('currency'), row('countries')],
  processes: [process_('web'), process_('worker'), process_('probe')],
  stores: {
    redis: {
      ...{ usedBytes: 1, maxBytes: 10, latencyMs: 1, clients: 1, opsPerSecond: 1 },
      ...{ evictionPolicy: 'noeviction', hasFile: true, isFileFailing: false, isFull: false },
    },
    postgres: { bytes: 1, connections: 1, latencyMs: 1 },
  },
  unready: [],
  unapproved: null,
  usageFailingSince: null,
}

/** A page of a fleet; what the facts do not say is empty. */
function page(facts: Facts): Record<string, string> {
  const rest: Omit<Snapshot, keyof Facts | 'problems'> = {
    lastHour: null,
    errors: [],
    accounts: [],
    changes: [],
    audit: [],
  }
  return renderPlaces({ ...facts, ...rest, problems: findProblems(facts) })
}

const brief = (facts: Facts) => findProblems(facts).map(({ rank, label, slug }) => [rank, label, slug])

describe('what an operator is told', () => {
  it('what an operator is told is nothing only when all is known and well', () => {
    assert.deepEqual(findProblems(well), [])
    assert.match(page(well).attention ?? '', /Nothing needs you\.</)
    assert.match(page(well).headline ?? '', /All 4 enabled APIs are healthy/)
  })

  it('what an operator is told is that calls of an API fail at its source while its health does not show it', () => {
    const calls = (failed: number) => ({
      ...noCalls,
      answered: 10,
      failed,
      codes: { UPSTREAM_INVALID_RESPONSE: failed },
    })
    const facts = (failed: number, health = healthy) => ({
      ...well,
      upstreams: [row('currency', { recent: calls(failed), health })],
    })
    assert.deepEqual(brief(facts(10)), [[1, 'Failing', 'currency']])
    assert.match(
      page(facts(10)).attention ?? '',
      /10 calls of the last five minutes \(50 %\) got UPSTREAM_INVALID_RESPONSE/,
    )
    assert.deepEqual(brief(facts(2)), [])
    assert.deepEqual(brief(facts(10, { ...healthy, status: 'Degraded' })), [[2, 'Degraded', 'currency']])
  })

  it('what an operator is told is that Redis is away, and no state, queue or count that nobody knows', () => {
    const unknown = { health: null, queue: null, cap: null, recent: null }
    const facts = {
      ...well,
      upstreams: [row('weather', unknown)],
      processes: null,
      stores: { ...well.stores, redis: null },
    }
    assert.deepEqual(brief(facts), [[0, 'Redis', null]])
    const shown = page(facts)
    assert.doesNotMatch(shown.attention ?? '', /Nothing needs you/)
    const cells = ['health', 'queue', 'cap', 'traffic'].map((cell) => shown[`weather ${cell}`] ?? '').join()
    assert.doesNotMatch(cells, /Healthy|\b0\b|100/)
    assert.doesNotMatch(shown.tiles ?? '', />0</)
  })

  it('what an operator is told is that Redis is full, evicts keys, keeps no file or cannot write it', () => {
    const redis = well.stores.redis ?? assert.fail()
    const of = (changes: Partial<typeof redis>) =>
      findProblems({ ...well, stores: { ...well.stores, redis: { ...redis, ...changes } } }).map(
        ({ rank, runbook, text }) => ({ rank, runbook, text }),
      )
    assert.deepEqual(of({ usedBytes: 9.5 }), [{ rank: 1, runbook: 'redis-memory', text: 'uses 95 % of its memory' }])
    const full = of({ usedBytes: 10, isFull: true })
    assert.deepEqual(
      full.map(({ rank, runbook }) => [rank, runbook]),
      [[0, 'redis-memory']],
    )
    const [evicts, ...others] = of({ evictionPolicy: 'volatile-lru' })
    assert.match(evicts?.text ?? '', /maxmemory-policy is volatile-lru/)
    assert.deepEqual(others, [])
    assert.deepEqual(of({ evictionPolicy: 'allkeys-lru', maxBytes: 0 }), [], 'without a bound nothing is evicted')
    assert.deepEqual(of({ evictionPolicy: undefined, hasFile: undefined }), [], 'a service that does not say')
    assert.equal(of({ hasFile: false })[0]?.rank, 2)
    assert.deepEqual(
      of({ isFileFailing: true }).map(({ rank, runbook }) => [rank, runbook]),
      [[0, 'redis-disk']],
    )
    const refused = { ...noCalls, answered: 1, failed: 9, codes: { OVERLOADED: 9 } }
    const ofCalls = (changes: Partial<typeof redis>) => {
      const stores = { ...well.stores, redis: { ...redis, ...changes } }
      return brief({ ...well, stores, upstreams: [row('weather', { recent: refused })] })
    }
    // That its calls are refused has this cause.
    assert.deepEqual(ofCalls({ isFileFailing: true }), [[0, 'Redis', null]])
    assert.deepEqual(ofCalls({ usedBytes: 10, isFull: true }), [[0, 'Redis full', null]])
    // Or another one, while Redis takes what is written.
    const nearly = [
      [1, 'Redis', null],
      [1, 'Overloaded', 'weather'],
    ]
    assert.deepEqual(ofCalls({ usedBytes: 9.5 }), nearly)
    const unwritten = { ...well.stores, redis: { ...redis, isFileFailing: true } }
    assert.match(
      page({ ...well, stores: unwritten, processes: null }).headline ?? '',
      /Redis<.* cannot write its append/,
    )
  })

  it('what an operator is told is what callers of an API were refused with, its share, its cause and what to do', () => {
    const codes = { OVERLOADED: 165, OK: 63 }
    const recent = { ...noCalls, answered: 63, failed: 165, codes, upstreamP95: 6_000 }
    const [overloaded] = findProblems({ ...well, upstreams: [row('sports-scores', { recent })] })
    assert.match(overloaded?.text ?? '', /sports-scores: 165 calls .*72 %.*answers take 6 s over 4 connections/)
    assert.match(overloaded?.callers ?? '', /503 OVERLOADED/)
    assert.ok(overloaded?.todo)
    // Refused at admission, nothing waits: the worse it gets, the more is said.
    const used = { ...noCalls, answered: 20, failed: 34, codes: { UPSTREAM_CAP_EXHAUSTED: 34, OK: 20 } }
    const cap = {
      concurrency: 4,
      underWay: 0,
      nextSlotMs: 36_000,
      limitedUntil: null,
      rates: [{ max: 10, seconds: 60, left: 0 }],
    }
    const [capped, ...others] = findProblems({ ...well, upstreams: [row('code-host-search', { recent: used, cap })] })
    assert.match(capped?.text ?? '', /34 calls .*the cap is 10 per 1 min; next slot in 36 s/)
    assert.deepEqual(others, [])
    const until = { ...cap, limitedUntil: Date.UTC(2026, 0, 1, 12, 30, 5) }
    const [limited, ...rest] = findProblems({ ...well, upstreams: [row('news', { cap: until })] })
    assert.equal(limited?.text, 'news: its source limits us until 12:30:05 UTC')
    assert.deepEqual(rest, [])
    const denied = { ...noCalls, answered: 1, failed: 9, codes: { UPSTREAM_AUTH_FAILED: 9 } }
    const todo = (takesKey: boolean) =>
      findProblems({ ...well, upstreams: [row('news', { recent: denied, takesKey })] })[0]?.todo ?? ''
    assert.match(todo(true), /renew its key with `npm run operator -- upstream <slug> --key-file F`/)
    assert.match(todo(false), /takes no key: .*User-Agent/)
  })

  it('what an operator is told does not depend on how often accounts over their limits are refused meanwhile', () => {
    const told = (code: string, refused: number) => {
      const recent = {
        ...noCalls,
        answered: 10,
        refused,
        failed: 10,
        codes: { [code]: 10, RATE_LIMIT_EXCEEDED: refused },
      }
      return findProblems({ ...well, upstreams: [row('weather', { recent })] }).map(({ text }) => text)
    }
    for (const code of ['INTERNAL_ERROR', 'UPSTREAM_TIMEOUT', 'DEPENDENCY_UNAVAILABLE']) {
      assert.match(told(code, 0).join(), /10 calls of the last five minutes \(50 %\)/, code)
      assert.deepEqual(told(code, 10_000), told(code, 0), code)
    }
  })

  it('what an operator is told names every code with which calls fail', () => {
    // A breaker that is open, a pause and an API that is not enabled are said as such.
    const saidAsState = ['UPSTREAM_UNAVAILABLE', 'API_PAUSED', 'API_NOT_ENABLED']
    const codes = Object.entries(ERRORS).flatMap(([code, { status }]) => (status >= 500 ? [code] : []))
    const silent = codes.filter((code) => {
      const recent = { ...noCalls, answered: 10, failed: 10, codes: { [code]: 10 } }
      return findProblems({ ...well, upstreams: [row('weather', { recent })] }).length === 0
    })
    assert.deepEqual(silent.sort(), saidAsState.sort())
    const recent = { ...noCalls, answered: 1, failed: 1, codes: { DEPENDENCY_UNAVAILABLE: 2 } }
    const upstreams = ['a', 'b', 'c'].map((slug) => row(slug, { recent }))
    assert.deepEqual(brief({ ...well, upstreams }), [[1, 'Store missed', null]], 'it is said once, not for each API')
  })

  it('what an operator is told names the cause that failing APIs share before each of them', () => {
    const words = 'DNS: no such host'
    const lastFailure = { at: NOW, code: 'UPSTREAM_ERROR', words, isNetwork: true }
    const health: HealthRow = { ...healthy, status: 'Down', since: NOW - 60_000, halfOpenInMs: 5_000, lastFailure }
    const upstreams = ['a', 'b', 'c'].map((slug) => row(slug, { health }))
    const problems = findProblems({ ...well, upstreams: [...upstreams, row('d')] })
    assert.deepEqual(problems[0]?.label, 'Network')
    assert.match(problems[0]?.text ?? '', /3 of 4 APIs cannot be reached \(DNS: no such host\)/)
    assert.match(problems[1]?.text ?? '', /a is Down for 1 min: DNS: no such host; next attempt in 5 s/)
    // Answers with an error come from the APIs themselves.
    const reached = { ...health, lastFailure: { ...lastFailure, words: 'HTTP 500 in 87 ms', isNetwork: false } }
    const own = findProblems({ ...well, upstreams: upstreams.map((of) => ({ ...of, health: reached })) })
    assert.ok(own.every(({ label }) => label === 'Down'))
  })

  it('what an operator is told of an API that is down by its score alone is that calls are sent and many fail', () => {
    const told = (halfOpenInMs: number | null) => {
      const health: HealthRow = { ...healthy, status: 'Down', score: 30, halfOpenInMs }
      const [problem] = findProblems({ ...well, upstreams: [row('weather', { health })] })
      return `${problem?.rank} ${problem?.text} ${problem?.callers}`
    }
    assert.equal(told(null), '0 weather is Down Many callers get 502 or wait longer.')
    assert.match(told(0), /^0 weather is Down; next attempt due Callers get 502 UPSTREAM_UNAVAILABLE at once/)
  })

  it('what an operator is told says of an API that was never tried that it was not checked, not that it is healthy', () => {
    const facts = { ...well, upstreams: [row('weather', { health: { ...healthy, checkedAt: null } }), row('trivia')] }
    assert.match(page(facts)['weather health'] ?? '', /not checked yet/)
    assert.doesNotMatch(page(facts)['weather health'] ?? '', /Healthy/)
    assert.match(page(facts).attention ?? '', /1 APIs? (is|are) not checked yet/)
  })

  it('what an operator is told says what callers of a paused API get', () => {
    const paused = (mode: 'hold' | 'refuse') => findProblems({ ...well, upstreams: [row('a', { paused: mode })] })[0]
    assert.match(paused('refuse')?.callers ?? '', /API_PAUSED/)
    assert.match(paused('hold')?.callers ?? '', /DEADLINE_EXCEEDED/)
  })

  it('what an operator is told leaves the pause of an API out that is switched off, not that of one for callers with keys', () => {
    const told = (isSwitchedOff: boolean) =>
      brief({ ...well, upstreams: [row('a', { paused: 'refuse', enabled: false, isSwitchedOff })] })
    assert.deepEqual([told(true), told(false)], [[], [[1, 'Paused', 'a']]])
  })

  it('what an operator is told is what naming a contact would give, while the API is enabled', () => {
    const lacking = (enabled: boolean) => ({ ...well, upstreams: [row('a', { enabled, lackedContact: 'a: a rule' })] })
    assert.deepEqual(brief(lacking(true)), [[3, 'No contact', 'a']])
    assert.match(findProblems(lacking(true))[0]?.todo ?? '', /Set CONTACT/)
    assert.deepEqual(brief(lacking(false)), [])
  })

  it('what an operator is told is what no process can be ready without, a key that cannot be opened, and who waits', () => {
    const schema = 'the schema of the database is older than this version: run the migrations'
    const unready = { ...well, unready: [schema] }
    assert.deepEqual(brief(unready), [[0, 'Not ready', null]])
    assert.match(page(unready).headline ?? '', /older than this version/)
    const keyless = (enabled: boolean) => ({ ...well, upstreams: [row('news', { enabled, isKeyUnreadable: true })] })
    assert.deepEqual(brief(keyless(true)), [[1, 'Key unreadable', 'news']])
    assert.match(findProblems(keyless(true))[0]?.callers ?? '', /without it/)
    assert.match(findProblems(keyless(false))[0]?.callers ?? '', /API_NOT_ENABLED/)
    const failing = { ...well, usageFailingSince: NOW - 60_000 }
    assert.deepEqual(brief(failing), [[1, 'Usage', null]])
    assert.match(findProblems(failing)[0]?.text ?? '', /for 1 min/)
    assert.deepEqual(brief({ ...failing, usageFailingSince: NOW - 1_000 }), [], 'one failed write')
    assert.deepEqual(brief({ ...failing, stores: { ...well.stores, postgres: null } }), [[0, 'Postgres', null]])
    const waiting = (unapproved: number) => findProblems({ ...well, unapproved }).map(({ rank, text }) => [rank, text])
    assert.deepEqual(waiting(0), [])
    assert.deepEqual(waiting(1), [[3, '1 account waits for approval']])
    assert.deepEqual(waiting(100), [[3, 'At least 100 accounts wait for approval']])
    assert.match(
      findProblems({ ...well, unapproved: 1 })[0]?.todo ?? '',
      /`npm run operator -- users --unapproved` lists them/,
    )
  })

  it('what an operator is told is which kind of process is missing, first those without which calls fail', () => {
    const without = (kind: string) => ({
      ...well,
      processes: well.processes?.filter((each) => each.kind !== kind) ?? [],
    })
    assert.deepEqual(brief(without('worker')), [[0, 'No worker', null]])
    assert.deepEqual(brief(without('web')), [[0, 'No API node', null]])
    assert.deepEqual(brief(without('probe')), [[2, 'No probe process', null]])
    const sharded = (serves: string[]) => ({
      ...well,
      upstreams: [...well.upstreams, row('news', { enabled: false })],
      processes: [process_('web'), process_('probe'), { ...process_('worker'), serves }],
    })
    assert.deepEqual(brief(sharded(['weather', 'trivia', 'currency', 'countries'])), [])
    assert.deepEqual(brief(sharded(['weather', 'countries'])), [[0, 'No worker', null]])
    assert.match(findProblems(sharded(['weather', 'countries']))[0]?.text ?? '', /serves trivia, currency$/)
    assert.deepEqual(
      brief({ ...well, processes: [process_('ops')] }).map(([, label]) => label),
      ['No worker', 'No API node', 'No probe process'],
    )
  })

  it('what an operator is told never puts a mistake of callers among failures', () => {
    const classes = Object.fromEntries(
      [
        'OK',
        'UPSTREAM_NOT_FOUND',
        'UPSTREAM_REJECTED',
        'RATE_LIMIT_EXCEEDED',
        'INVALID_API_KEY',
        'UPSTREAM_TIMEOUT',
        'OVERLOADED',
      ].map((code) => [code, outcomeClass(code)]),
    )
    assert.deepEqual(classes, {
      OK: 'answered',
      UPSTREAM_NOT_FOUND: 'answered',
      UPSTREAM_REJECTED: 'answered',
      RATE_LIMIT_EXCEEDED: 'refused',
      INVALID_API_KEY: 'refused',
      UPSTREAM_TIMEOUT: 'failed',
      OVERLOADED: 'failed',
    })
  })
})
