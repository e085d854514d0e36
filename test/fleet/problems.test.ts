import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { apiFacts } from '../../src/console/api-facts.ts'
import { renderPlaces } from '../../src/console/browser/render.js'
import { byTrouble, rowCells } from '../../src/console/browser/rows.js'
import { ERRORS } from '../../src/errors.ts'
import { headlineOf } from '../../src/fleet/headline.ts'
import { outcomeClass } from '../../src/fleet/outcome-class.ts'
import { findProblems } from '../../src/fleet/problems.ts'
import type { Facts, HealthRow, ProcessRow, RecentCalls, Snapshot, UpstreamRow } from '../../src/fleet/snapshot.ts'
import { percent } from '../../src/fleet/words.js'
import { isFailing } from '../../src/operator/answers-as-text.ts'

const NOW = 1_700_000_000_000

const healthy: HealthRow = {
  status: 'Healthy',
  score: 100,
  since: null,
  cause: null,
  checkedAt: NOW - 1_000,
  lastFailure: null,
  lastOkAt: NOW - 1_000,
  answeredBy: null,
  halfOpenInMs: null,
}
const noCalls: RecentCalls = {
  ...{ answered: 0, refused: 0, failed: 0, codes: {}, lastAt: {}, answeredAt: null, upstreamP95: null, lastMinute: {} },
}

/** Calls of the last five minutes by code; each code was seen `agoMs` ago for the last time. */
function calls(codes: Record<string, number>, agoMs = 0): RecentCalls {
  const of = (wanted: string) =>
    Object.entries(codes).reduce((sum, [code, count]) => sum + (outcomeClass(code) === wanted ? count : 0), 0)
  const lastAt = Object.fromEntries(Object.keys(codes).map((code) => [code, NOW - agoMs]))
  const outcomes = { answered: of('answered'), refused: of('refused'), failed: of('failed') }
  return { ...noCalls, ...outcomes, codes, lastAt, answeredAt: of('answered') > 0 ? NOW - agoMs : null }
}

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
    hour: null,
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
  apis: null,
})

const well: Facts = {
  at: NOW,
  upstreams: [row('weather'), row('trivia'), row('currency'), row('countries')],
  processes: [process_('web'), process_('worker'), process_('probe')],
  stores: {
    redis: {
      ...{ usedBytes: 1, maxBytes: 10, latencyMs: 1, clients: 1, opsPerSecond: 1 },
      ...{ evictionPolicy: 'noeviction', hasFile: true, isFileFailing: false, isReplica: false, isFull: false },
    },
    postgres: { bytes: 1, connections: 1, latencyMs: 1 },
  },
  unready: [],
  unapproved: null,
  sealedEarlier: null,
  usageFailingSince: null,
}

/** The problems of a fleet. Members that the facts leave out are empty. */
function page(facts: Facts): Record<string, string> {
  const rest: Omit<Snapshot, keyof Facts | 'problems' | 'headline'> = {
    lastMinute: null,
    lastHour: null,
    errors: [],
    accounts: [],
    changes: [],
    audit: [],
  }
  const problems = findProblems(facts)
  return renderPlaces({ ...facts, ...rest, problems, headline: headlineOf({ ...facts, problems }) })
}

const brief = (facts: Facts) => findProblems(facts).map(({ rank, label, slug }) => [rank, label, slug])

describe('what an operator reads', () => {
  it('what an operator reads is nothing only when all is known and well', () => {
    assert.deepEqual(findProblems(well), [])
    assert.match(page(well).attention ?? '', /Nothing needs attention\.</)
    assert.match(page(well).headline ?? '', /All 4 enabled APIs are healthy/)
    const first = well.upstreams.slice(0, 1)
    assert.match(page({ ...well, upstreams: first }).headline ?? '', /The only enabled API is healthy/)
    assert.match(page({ ...well, upstreams: [] }).headline ?? '', /No API is enabled/)
  })

  it('what an operator reads is how many calls have no row in the log of calls, why, and when that is over', () => {
    const dropped = (reason: 'postgres' | 'size' | 'account', lastAt: number, rows: number) => [
      { reason, lastAt, rows },
    ]
    const facts = (lastAt: number): Facts => ({
      ...well,
      processes: [
        { ...process_('web'), dropped: [...dropped('postgres', NOW - 90_000, 1_000), ...dropped('account', NOW, 9)] },
        { ...process_('worker'), dropped: dropped('postgres', lastAt, 200) },
        process_('probe'),
      ],
    })
    const [now, ...others] = findProblems(facts(NOW - 1_000))
    assert.deepEqual([others, now?.rank, now?.label, now?.runbook, now?.endedAt], [[], 1, 'Call log', 'call-log', null])
    assert.match(now?.text ?? '', /^1\D?200 ended calls have no row in the log of calls: Postgres does not accept/)
    const over = findProblems(facts(NOW - 61_000))
    assert.deepEqual(
      over.map(({ rank, endedAt }) => [rank, endedAt]),
      [[3, NOW - 61_000]],
    )
    assert.equal(isFailing({ problems: over } as never), false)
  })

  it('what an operator reads is that Postgres answers and does not accept the rows of calls', () => {
    const waiting = (rows: number) => ({ dropped: [{ reason: 'waiting' as const, rows, lastAt: NOW }] })
    const processes = [
      { ...process_('web'), ...waiting(40) },
      { ...process_('worker'), ...waiting(2) },
      process_('probe'),
    ]
    const [now, ...others] = findProblems({ ...well, processes })
    assert.deepEqual([others, now?.rank, now?.label, now?.runbook], [[], 1, 'Call log', 'call-log'])
    assert.match(now?.text ?? '', /^Postgres does not accept the rows of 42 ended calls/)
    const usage = findProblems({ ...well, processes, usageFailingSince: NOW - 60_000 })
    assert.deepEqual(
      usage.map(({ label }) => label),
      ['Usage'],
    )
    const away = findProblems({ ...well, processes, stores: { ...well.stores, postgres: null } })
    assert.deepEqual(
      away.map(({ label }) => label),
      ['Postgres'],
    )
  })

  it('what an operator reads is that calls of an API fail at its source, while its health shows it and while not', () => {
    const facts = (failed: number, health = healthy) => ({
      ...well,
      upstreams: [row('currency', { recent: calls({ OK: 10, UPSTREAM_INVALID_RESPONSE: failed }), health })],
    })
    assert.deepEqual(brief(facts(10)), [[0, 'Failing', 'currency']])
    assert.match(
      page(facts(10)).headline ?? '',
      /10 of 20 calls in the last 5 minutes failed \(50 %\): UPSTREAM_INVALID_RESPONSE/,
    )
    assert.deepEqual(brief(facts(2)), [])
    const degraded = facts(10, { ...healthy, status: 'Degraded' })
    assert.deepEqual(brief(degraded), [[0, 'Degraded', 'currency']])
    assert.match(page(degraded).headline ?? '', /currency is degraded: .*10 of 20 calls in the last 5 minutes failed/)
    assert.deepEqual(brief(facts(0, { ...healthy, status: 'Degraded' })), [[2, 'Degraded', 'currency']])
    const [problem] = findProblems(degraded)
    assert.match(problem?.text ?? '', /is degraded: its answers are not in the expected form; 10 of 20 calls/)
    assert.match(problem?.callers ?? '', /^Some callers get 502/)
    assert.match(problem?.todo ?? '', /^Compare an answer of the source with the recorded answer/)
    // A minute ago, and the source has answered as expected since.
    const recent = calls({ OK: 10, UPSTREAM_INVALID_RESPONSE: 10 }, 60_000)
    const past = row('currency', { recent, health: { ...healthy, status: 'Degraded' } })
    assert.equal(findProblems({ ...well, upstreams: [past] })[0]?.todo, 'Probe it, and watch it.')
  })

  it('what an operator reads first is the reason if one API fails, and the names if several fail', () => {
    const failing = (slug: string) =>
      row(slug, { recent: calls({ UPSTREAM_ERROR: 9 }), health: { ...healthy, status: 'Degraded' } })
    const facts = (...slugs: string[]): Facts => ({ ...well, upstreams: slugs.map(failing) })
    assert.match(page(facts('weather')).headline ?? '', /weather is degraded: .*9 of 9 calls .* failed/)
    assert.match(page(facts('weather', 'trivia')).headline ?? '', /Failing.* Calls to weather and trivia fail\.$/)
    const seven = facts(...['a', 'b', 'c', 'd', 'e', 'f', 'g'])
    assert.match(page(seven).headline ?? '', / Calls to a, b, c, d, e and 2 more fail\.$/)
    assert.equal(findProblems(facts('weather'))[0]?.callers, 'Callers get 502.')
  })

  it('what an operator reads follows what callers get: from a twentieth of calls on an API is failing, whatever the codes', () => {
    const of = (codes: Record<string, number>) => {
      const problems = findProblems({ ...well, upstreams: [row('weather', { recent: calls(codes) }), row('trivia')] })
      return [isFailing({ problems } as never), headlineOf({ ...well, problems, upstreams: [row('weather')] }).text]
    }
    assert.equal(of({ OK: 95, UPSTREAM_TIMEOUT: 5 })[0], false, 'five of a hundred are no more than a twentieth')
    assert.equal(of({ OK: 94, UPSTREAM_TIMEOUT: 6 })[0], true)
    assert.equal(of({ UPSTREAM_TIMEOUT: 2 })[0], false, 'a call fails now and then')
    const [isMixed, text] = of({ OK: 94, UPSTREAM_TIMEOUT: 3, OVERLOADED: 3 })
    assert.equal(isMixed, true)
    assert.match(
      String(text),
      /weather: 6 of 100 calls .* failed \(6\.0 %\): .*(UPSTREAM_TIMEOUT, OVERLOADED|OVERLOADED, UPSTREAM_TIMEOUT)/,
    )
    assert.equal(of({ OK: 10, API_NOT_ENABLED: 90 })[0], false, 'before it was enabled')
  })

  it('what an operator reads in the drill "the source answers 429" is that the source limits the gateway, not that the cap is used up', () => {
    const cap = {
      ...(row('weather').cap ?? assert.fail()),
      nextSlotMs: 36_000,
      rates: [{ max: 600, seconds: 60, left: 598 }],
    }
    const recent = calls({ UPSTREAM_RATE_LIMITED: 40 })
    const lastFailure = { at: NOW, code: 'UPSTREAM_RATE_LIMITED', words: 'HTTP 429 in 9 ms', isNetwork: false }
    const health = { ...healthy, lastFailure, lastOkAt: NOW - 60_000 }
    const told = (changes: Partial<UpstreamRow>) => {
      const facts = { ...well, upstreams: [row('weather', { recent, cap, health, ...changes }), row('trivia')] }
      return { facts, shown: page(facts) }
    }
    const held = told({ cap: { ...cap, limitedUntil: NOW + 36_000 } })
    assert.deepEqual(brief(held.facts), [[0, 'Limited', 'weather']])
    assert.match(
      held.shown.headline ?? '',
      /Limited.*weather: 40 of 40 calls in the last 5 minutes failed \(100 %\): its source limits the gateway until 22:13:56 UTC/,
    )
    assert.match(held.shown['weather state'] ?? '', /Limited.*until 22:13:56/)
    assert.match(
      `${Object.fromEntries(apiFacts(held.facts.upstreams[0] ?? assert.fail(), NOW)).Health}`,
      /Limited.*limited by its source until 22:13:56 UTC.*HTTP 429 in 9 ms/,
    )
    // The hold is over, and no call has tried again.
    assert.deepEqual(brief(told({}).facts), [[0, 'Limited', 'weather']])
    assert.match(told({}).shown.headline ?? '', /its source limits the gateway \(HTTP 429 in 9 ms\)/)
    // No caller has met the limit yet.
    const unnoticed = told({ recent: noCalls, cap: { ...cap, limitedUntil: NOW + 36_000 } })
    assert.deepEqual(brief(unnoticed.facts), [[2, 'Limited', 'weather']])
    const callers = ({ facts }: typeof unnoticed) => findProblems(facts)[0]?.callers
    assert.equal(
      callers(unnoticed),
      'Callers wait until then; calls that would wait too long are refused with the wait in Retry-After.',
    )
    const withFallback = told({
      recent: noCalls,
      cap: { ...cap, limitedUntil: NOW + 36_000 },
      health: { ...healthy, answeredBy: 'another' },
    })
    assert.equal(callers(withFallback), 'Callers wait until then; calls that would wait too long go to another.')
    assert.match(unnoticed.shown.headline ?? '', /1 of 2 APIs are healthy, 1 limited by the source/)
  })

  it('what an operator reads in the drill "a cap is used up" is the cap, and only while a rate has nothing left', () => {
    const cap = { ...(row('a').cap ?? assert.fail()), nextSlotMs: 36_000, rates: [{ max: 10, seconds: 60, left: 0 }] }
    const queue = { ...(row('a').queue ?? assert.fail()), waiting: 2, oldestMs: 4_000 }
    assert.deepEqual(brief({ ...well, upstreams: [row('a', { cap, queue })] }), [[2, 'Cap used up', 'a']])
    const other = { ...cap, rates: [{ max: 10, seconds: 60, left: 3 }] }
    assert.deepEqual(brief({ ...well, upstreams: [row('a', { cap: other, queue })] }), [])
    const recent = calls({ OK: 20, UPSTREAM_CAP_EXHAUSTED: 48 })
    const facts = { ...well, upstreams: [row('a', { cap, recent })] }
    assert.deepEqual(brief(facts), [[0, 'Cap used up', 'a']])
    assert.match(
      page(facts).headline ?? '',
      /a: 48 of 68 calls in the last 5 minutes were refused \(71 %\): the cap is used up/,
    )
  })

  it('what an operator reads in the drill "a slow source" is that its answers take long, not that the cap is used up', () => {
    const cap = { ...(row('a').cap ?? assert.fail()), rates: [{ max: 60, seconds: 60, left: 40 }] }
    const codes = { OK: 19, UPSTREAM_CAP_EXHAUSTED: 31 }
    const slow = { ...well, upstreams: [row('a', { cap, recent: { ...calls(codes), upstreamP95: 6_000 } })] }
    assert.deepEqual(brief(slow), [[0, 'Overloaded', 'a']])
    assert.match(
      page(slow).headline ?? '',
      /31 of 50 calls .* were refused \(62 %\): the source answers slowly \(6 s\) and 4 connections cannot carry more calls/,
    )
    const quick = { ...well, upstreams: [row('a', { cap, recent: { ...calls(codes), upstreamP95: 60 } })] }
    assert.deepEqual(brief(quick), [[0, 'Cap used up', 'a']])
    const timeouts = { ...well, upstreams: [row('a', { recent: calls({ OK: 10, UPSTREAM_TIMEOUT: 9 }) })] }
    assert.match(page(timeouts).headline ?? '', /Failing.*9 of 19 calls .* failed \(47 %\): UPSTREAM_TIMEOUT/)
  })

  it('what an operator reads in the drill "an API is paused" is who paused it, and that callers are refused once they are', () => {
    const paused = (recent: RecentCalls) => ({ ...well, upstreams: [row('a', { paused: 'refuse', recent }), row('b')] })
    assert.deepEqual(brief(paused(noCalls)), [[1, 'Paused', 'a']])
    assert.match(page(paused(noCalls)).headline ?? '', /1 of 2 APIs are healthy, 1 paused/)
    const refusing = paused(calls({ API_PAUSED: 12 }))
    assert.deepEqual(brief(refusing), [[0, 'Paused', 'a']])
    assert.match(page(refusing).headline ?? '', /a is paused by an operator; 12 of 12 calls .* were refused \(100 %\)/)
  })

  it('what an operator reads of trouble that is over comes last, in grey, with its time, and is no failure of now', () => {
    const cap = { ...(row('a').cap ?? assert.fail()), rates: [{ max: 10, seconds: 60, left: 10 }] }
    const over = (agoMs: number, codes: Record<string, number>, changes: Partial<UpstreamRow> = {}) => ({
      ...well,
      upstreams: [row('a', { cap, recent: { ...calls(codes, agoMs), answeredAt: NOW - 5_000 }, ...changes }), row('b')],
    })
    const kinds = [
      'UPSTREAM_CAP_EXHAUSTED',
      'OVERLOADED',
      'DEADLINE_EXCEEDED',
      'UPSTREAM_TIMEOUT',
      'UPSTREAM_RATE_LIMITED',
    ]
    for (const code of [...kinds, 'UPSTREAM_AUTH_FAILED', 'INTERNAL_ERROR', 'DEPENDENCY_UNAVAILABLE', 'DRAINING']) {
      const [problem, ...others] = findProblems(over(120_000, { [code]: 48 }))
      assert.deepEqual([problem?.rank, problem?.endedAt, others], [3, NOW - 120_000, []], code)
      assert.match(problem?.text ?? '', new RegExp(`48 calls got ${code}, the last at 22:11:20 UTC, 2 min ago`))
      assert.match(page(over(120_000, { [code]: 48 })).headline ?? '', /All 2 enabled APIs are healthy/)
      assert.equal(findProblems(over(20_000, { [code]: 48 }))[0]?.rank, 0, `${code} twenty seconds ago`)
    }
    const shown = page(over(120_000, { OVERLOADED: 48 })).attention ?? ''
    assert.match(shown, /Nothing needs attention\..*class="attention past">.*class="over".*Overloaded, over/s)
    // Nobody has called since, so the outcome of the last calls is the best that is known.
    const silent = (codes: Record<string, number>, lastOkAt: number) => ({
      ...well,
      upstreams: [row('a', { cap, recent: calls(codes, 120_000), health: { ...healthy, lastOkAt } })],
    })
    assert.equal(findProblems(silent({ UPSTREAM_RATE_LIMITED: 9 }, NOW - 200_000))[0]?.rank, 0)
    assert.equal(findProblems(silent({ UPSTREAM_RATE_LIMITED: 9 }, NOW - 2_000))[0]?.rank, 3, 'a probe was answered')
    const down = row('b', { health: { ...healthy, status: 'Down' } })
    const mixed = {
      ...over(120_000, { OVERLOADED: 48 }),
      upstreams: [...over(120_000, { OVERLOADED: 48 }).upstreams, down],
    }
    assert.deepEqual(brief(mixed), [
      [0, 'Down', 'b'],
      [3, 'Overloaded', 'a'],
    ])
  })

  it('what an operator reads as the reason is the outcome of the last attempt, never an outcome that a newer attempt refuted', () => {
    const words = 'DNS: no such host'
    const lastFailure = { at: NOW - 5_000, code: 'UPSTREAM_ERROR', words, isNetwork: true }
    const text = (changes: Partial<HealthRow>) => {
      const health: HealthRow = { ...healthy, status: 'Degraded', since: NOW - 300_000, cause: 'score', ...changes }
      return findProblems({ ...well, upstreams: [row('a', { health })] })[0]?.text ?? ''
    }
    assert.equal(text({ lastFailure, lastOkAt: NOW - 60_000 }), `a has been degraded for 5 min: ${words}`)
    assert.match(
      text({ lastFailure: null, lastOkAt: NOW - 1_000 }),
      /too many recent calls failed or were slow; the last attempt succeeded$/,
    )
    assert.equal(
      text({ cause: 'trials-passed', lastFailure: null, lastOkAt: NOW - 1_000 }),
      'a has been degraded for 5 min: it recovers: three attempts in a row succeeded',
    )
  })

  it('what an operator reads is that Redis is unreachable, and no state, queue or count that nobody knows', () => {
    const unknown = { health: null, queue: null, cap: null, recent: null }
    const facts = {
      ...well,
      upstreams: [row('weather', unknown)],
      processes: null,
      stores: { ...well.stores, redis: null },
    }
    assert.deepEqual(brief(facts), [[0, 'Redis', null]])
    const shown = page(facts)
    assert.doesNotMatch(shown.attention ?? '', /Nothing needs attention/)
    const cells = ['state', 'calls', 'failed', 'p95', 'cap', 'waiting', 'active']
      .map((cell) => shown[`weather ${cell}`] ?? '')
      .join()
    assert.doesNotMatch(cells, /Healthy|\b0\b|100/)
    assert.doesNotMatch(shown.tiles ?? '', />0</)
  })

  it('what an operator reads is that Redis is full, evicts keys, keeps no file or cannot write it', () => {
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
    const refused = calls({ OK: 1, OVERLOADED: 9 })
    const ofCalls = (changes: Partial<typeof redis>) => {
      const stores = { ...well.stores, redis: { ...redis, ...changes } }
      return brief({ ...well, stores, upstreams: [row('weather', { recent: refused })] })
    }
    // This is the cause of the refusals.
    assert.deepEqual(ofCalls({ isFileFailing: true }), [[0, 'Redis', null]])
    assert.deepEqual(ofCalls({ usedBytes: 10, isFull: true }), [[0, 'Redis full', null]])
    // Or another problem, while Redis accepts writes.
    const nearly = [
      [0, 'Overloaded', 'weather'],
      [1, 'Redis', null],
    ]
    assert.deepEqual(ofCalls({ usedBytes: 9.5 }), nearly)
    const unwritten = { ...well.stores, redis: { ...redis, isFileFailing: true } }
    assert.match(
      page({ ...well, stores: unwritten, processes: null }).headline ?? '',
      /Redis<.* cannot write its append/,
    )
  })

  it('what an operator reads is what callers of an API were refused with, its share, its cause and what to do', () => {
    const recent = { ...calls({ OVERLOADED: 165, OK: 63 }), upstreamP95: 6_000 }
    const [overloaded] = findProblems({ ...well, upstreams: [row('sports-scores', { recent })] })
    assert.match(
      overloaded?.text ?? '',
      /sports-scores: 165 of 228 calls .*were refused \(72 %\): answers take 6 s over 4 connections/,
    )
    assert.match(overloaded?.callers ?? '', /503 OVERLOADED/)
    const quick = { ...recent, upstreamP95: 40 }
    const [unexplained] = findProblems({ ...well, upstreams: [row('weather', { recent: quick })] })
    assert.match(`${unexplained?.text} ${unexplained?.todo}`, /so the source is not the reason .*Redis was short/)
    assert.ok(overloaded?.todo)
    // If admission refuses the calls, nothing waits. The more calls it refuses, the more the page
    // says.
    const used = calls({ UPSTREAM_CAP_EXHAUSTED: 34, OK: 20 })
    const cap = {
      concurrency: 4,
      underWay: 0,
      nextSlotMs: 36_000,
      limitedUntil: null,
      rates: [{ max: 10, seconds: 60, left: 0 }],
    }
    const [capped, ...others] = findProblems({ ...well, upstreams: [row('code-host-search', { recent: used, cap })] })
    assert.match(capped?.text ?? '', /34 of 54 calls .*the cap is used up \(10 per 1 min\); next slot in 36 s/)
    assert.deepEqual(others, [])
    const until = { ...cap, limitedUntil: Date.UTC(2026, 0, 1, 12, 30, 5) }
    const [limited, ...rest] = findProblems({ ...well, upstreams: [row('news', { cap: until })] })
    assert.equal(limited?.text, 'news: its source limits the gateway until 12:30:05 UTC')
    assert.deepEqual(rest, [])
    const denied = calls({ OK: 1, UPSTREAM_AUTH_FAILED: 9 })
    const todo = (takesKey: boolean) =>
      findProblems({ ...well, upstreams: [row('news', { recent: denied, takesKey })] })[0]?.todo ?? ''
    assert.match(todo(true), /renew its key with `operator upstream <slug> --key-file F`/)
    assert.match(todo(false), /needs no key: .*User-Agent/)
  })

  it('what an operator reads does not depend on how often accounts over their limits are refused meanwhile', () => {
    const told = (code: string, refused: number) => {
      const recent = calls({ OK: 10, [code]: 10, RATE_LIMIT_EXCEEDED: refused })
      return findProblems({ ...well, upstreams: [row('weather', { recent })] }).map(({ text }) => text)
    }
    for (const code of ['INTERNAL_ERROR', 'UPSTREAM_TIMEOUT', 'DEPENDENCY_UNAVAILABLE']) {
      assert.match(told(code, 0).join(), /10 of 20 calls in the last 5 minutes .* \(50 %\)/, code)
      assert.deepEqual(told(code, 10_000), told(code, 0), code)
    }
  })

  it('what an operator reads of processes with different documents is that no call is sent by another document', () => {
    const processes = ['web', 'worker', 'probe'].map((kind, index) => ({
      ...process_(kind),
      apis: { stock: `${index}abcd` },
    }))
    const [problem] = findProblems({ ...well, processes })
    assert.match(problem?.text ?? '', /^stock differs: web 1 0abc, worker 1 1abc, probe 1 2abc$/)
    assert.match(problem?.callers ?? '', /waits for a worker that has the same document .* 503 API_NOT_ENABLED\.$/)
  })

  it('what an operator reads names every code with which calls fail', () => {
    // A pause and an API that is not enabled have lines of their own.
    const saidAsState = ['API_PAUSED', 'API_NOT_ENABLED']
    const codes = Object.entries(ERRORS).flatMap(([code, { status }]) => (status >= 500 ? [code] : []))
    const silent = codes.filter((code) => {
      const recent = calls({ OK: 10, [code]: 10 })
      return findProblems({ ...well, upstreams: [row('weather', { recent })] }).length === 0
    })
    assert.deepEqual(silent.sort(), saidAsState.sort())
    const recent = calls({ OK: 1, DEPENDENCY_UNAVAILABLE: 2 })
    const upstreams = ['a', 'b', 'c'].map((slug) => row(slug, { recent }))
    assert.deepEqual(
      brief({ ...well, upstreams }),
      [[0, 'Store unreachable', null]],
      'it is said once, not for each API',
    )
  })

  it('what an operator reads tells a cause that APIs share once, with their number and names, in place of a line for each', () => {
    const words = 'DNS: no such host'
    const unreached = (slug: string, changes: Partial<HealthRow> = {}, of: Partial<UpstreamRow> = {}) => {
      const lastFailure = { at: NOW, code: 'UPSTREAM_ERROR', words, isNetwork: true }
      const health = { ...healthy, status: 'Down' as const, since: NOW - 60_000, halfOpenInMs: 5_000, lastFailure }
      return row(slug, { health: { ...health, ...changes }, ...of })
    }
    const names = ['a', 'b', 'c']
    const most = { ...well, upstreams: [...names.map((slug) => unreached(slug)), row('d')] }
    const [problem, ...others] = findProblems(most)
    assert.deepEqual(others, [])
    assert.equal(problem?.label, 'Network')
    assert.equal(problem?.text, '3 of 4 APIs cannot be reached (DNS: no such host), the first for 1 min')
    assert.match(problem?.callers ?? '', /: a, b, c\.$/)
    // The headline says it, and the line of the problem does not say it again.
    const { headline, attention } = page(most)
    assert.equal(`${headline}${attention}`.match(/DNS: no such host/g)?.length, 1)

    // Other words of the same trouble are the same trouble, if most APIs have it.
    const tls = { at: NOW, code: 'UPSTREAM_ERROR', words: 'no connection in time', isNetwork: true }
    const mixed = [unreached('a'), unreached('b', { lastFailure: tls }), unreached('c'), row('d'), row('e'), row('f')]
    assert.match(
      findProblems({ ...well, upstreams: mixed })[0]?.text ?? '',
      /\(DNS: no such host; no connection in time\)/,
    )
    // If fewer APIs have the same words, they also share a line, beside the APIs with other words.
    const few = [...names.map((slug) => unreached(slug)), unreached('t', { lastFailure: tls })]
    const well9 = Array.from({ length: 9 }, (_, index) => row(`well-${index}`))
    assert.deepEqual(brief({ ...well, upstreams: [...few, ...well9] }), [
      [0, 'Network', null],
      [0, 'Down', 't'],
    ])
    const degraded = names.map((slug) => unreached(slug, { status: 'Degraded' }))
    assert.deepEqual(brief({ ...well, upstreams: [...degraded, ...well9] }), [[2, 'Network', null]])

    // The line says what callers noticed. Callers whom a fallback source answered do not count.
    const recent = calls({ '200': 1, UPSTREAM_UNAVAILABLE: 9 })
    const called = names.map((slug) => unreached(slug, {}, { recent }))
    assert.match(findProblems({ ...well, upstreams: called })[0]?.text ?? '', /; 27 of 30 calls .* failed \(90 %\)$/)
    const answered = unreached('d', { status: 'Degraded', answeredBy: 'another' })
    assert.deepEqual(brief({ ...well, upstreams: [...names.map((slug) => unreached(slug)), answered] }), [
      [0, 'Network', null],
      [2, 'Degraded', 'd'],
    ])
    assert.match(
      findProblems({
        ...well,
        upstreams: [...names.map((slug) => unreached(slug)), row('d', { health: { ...healthy, checkedAt: null } })],
      })[0]?.text ?? '',
      /^3 of 3 checked APIs /,
    )

    // Answers with an error come from the APIs themselves.
    const lastFailure = { at: NOW, code: 'UPSTREAM_ERROR', words: 'HTTP 500 in 87 ms', isNetwork: false }
    const own = findProblems({ ...well, upstreams: names.map((slug) => unreached(slug, { lastFailure })) })
    assert.deepEqual(
      own.map(({ label }) => label),
      ['Down', 'Down', 'Down'],
    )
  })

  it('what an operator reads of APIs without a worker does not repeat for each API that its calls ran out of time', () => {
    const upstreams = ['a', 'b', 'c'].map((slug) => row(slug, { recent: calls({ DEADLINE_EXCEEDED: 9 }) }))
    assert.equal(brief({ ...well, upstreams }).length, 3)
    const others = [process_('web'), process_('probe')]
    assert.deepEqual(brief({ ...well, upstreams, processes: others }), [[0, 'No worker', null]])
    const processes = [...others, { ...process_('worker'), serves: ['a'] }]
    const slugs = findProblems({ ...well, upstreams, processes }).map(({ slug }) => slug)
    assert.deepEqual(slugs, [null, 'a'])
  })

  it('what an operator reads of an API whose attempt is due is that the next call tests it', () => {
    const callers = (halfOpenInMs: number) => {
      const health = { ...healthy, status: 'Down' as const, halfOpenInMs }
      return findProblems({ ...well, upstreams: [row('a', { health }), row('b')] })[0]?.callers
    }
    assert.equal(callers(9_000), 'Callers get 502 UPSTREAM_UNAVAILABLE at once, or a stored answer.')
    assert.match(callers(0) ?? '', /^The next call tests the source\. Until it has ended, other callers get 502 /)
  })

  it('what an operator reads of an API that is down by its score alone is that calls are sent and many fail', () => {
    const told = (halfOpenInMs: number | null) => {
      const health: HealthRow = { ...healthy, status: 'Down', score: 30, halfOpenInMs }
      const [problem] = findProblems({ ...well, upstreams: [row('weather', { health })] })
      return `${problem?.rank} ${problem?.text} ${problem?.callers}`
    }
    assert.equal(told(null), '0 weather is down: the last attempt succeeded Many callers get 502 or wait longer.')
    assert.match(
      told(9_000),
      /^0 weather is down: the last attempt succeeded; next attempt in 9 s Callers get 502 UPSTREAM_UNAVAILABLE at once/,
    )
  })

  it('what an operator reads says of an API that was never tried that it was not checked, not that it is healthy', () => {
    const facts = { ...well, upstreams: [row('weather', { health: { ...healthy, checkedAt: null } }), row('trivia')] }
    assert.match(page(facts)['weather state'] ?? '', /Unchecked/)
    assert.doesNotMatch(page(facts)['weather state'] ?? '', /Healthy/)
    assert.match(page(facts).attention ?? '', /1 APIs? (is|are) not checked yet/)
    const none = { ...well, upstreams: [row('weather', { health: { ...healthy, checkedAt: null } })] }
    assert.match(page(none).headline ?? '', /Unchecked.*0 of 1 APIs are healthy, 1 not checked yet/)
    assert.doesNotMatch(page(none).headline ?? '', /Healthy/)
  })

  it('what an operator reads of an API whose only answers were rate limits is its last answer', () => {
    const lastFailure = { at: NOW, code: 'UPSTREAM_RATE_LIMITED', words: 'HTTP 429 in 9 ms', isNetwork: false }
    const shown = row('weather', { health: { ...healthy, checkedAt: null, lastFailure } })
    assert.match(`${Object.fromEntries(apiFacts(shown, NOW)).Health}`, /Unchecked.*last attempt: HTTP 429 in 9 ms/)
  })

  it('what an operator reads of a share never rounds some calls to none or to all', () => {
    const shares = [0, 0.000_1, 0.001, 0.06, 0.5, 0.994, 0.996, 0.999_99, 1].map(percent)
    const words = ['0 %', 'under 0.1 %', '0.1 %', '6.0 %', '50 %', '99 %', 'over 99 %', 'over 99 %', '100 %']
    assert.deepEqual(shares, words)
  })

  it('what an operator reads says what callers of a paused API get', () => {
    const paused = (mode: 'hold' | 'refuse') => findProblems({ ...well, upstreams: [row('a', { paused: mode })] })[0]
    assert.match(paused('refuse')?.callers ?? '', /API_PAUSED/)
    assert.match(paused('hold')?.callers ?? '', /DEADLINE_EXCEEDED/)
  })

  it('what an operator reads leaves out the pause of an API that is switched off, but not the pause of an API for callers with keys', () => {
    const told = (isSwitchedOff: boolean) =>
      brief({ ...well, upstreams: [row('a', { paused: 'refuse', enabled: false, isSwitchedOff })] })
    assert.deepEqual([told(true), told(false)], [[], [[1, 'Paused', 'a']]])
  })

  it('what an operator reads is what naming a contact would give, while the API is enabled', () => {
    const lacking = (enabled: boolean) => ({ ...well, upstreams: [row('a', { enabled, lackedContact: 'a: a rule' })] })
    assert.deepEqual(brief(lacking(true)), [[3, 'No contact', 'a']])
    assert.match(findProblems(lacking(true))[0]?.todo ?? '', /Set CONTACT/)
    assert.deepEqual(brief(lacking(false)), [])
  })

  it('what an operator reads is what no process can be ready without, a key that cannot be opened, and who waits', () => {
    const schema = 'the schema of the database is older than this version of the gateway: run the migrations'
    const unready = { ...well, unready: [schema] }
    assert.deepEqual(brief(unready), [[0, 'Not ready', null]])
    assert.match(page(unready).headline ?? '', /older than this version/)
    const keyless = (enabled: boolean) => ({ ...well, upstreams: [row('news', { enabled, isKeyUnreadable: true })] })
    assert.deepEqual(brief(keyless(true)), [[1, 'Key unreadable', 'news']])
    assert.match(findProblems(keyless(true))[0]?.callers ?? '', /without the key/)
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
    assert.match(findProblems({ ...well, unapproved: 1 })[0]?.todo ?? '', /`operator accounts --unapproved` lists them/)
    const sealed = (sealedEarlier: number) => findProblems({ ...well, sealedEarlier })[0] ?? assert.fail()
    assert.equal(sealed(1).text, 'has an earlier value, which 1 stored secret still needs')
    assert.equal(sealed(7).text, 'has an earlier value, which 7 stored secrets still need')
    assert.match(sealed(10_000).text, /at least 10000 stored secrets/)
    assert.match(sealed(0).todo, /remove them. If the last value is your next secret, move it to the front/)
  })

  it('what an operator reads is which kind of process is missing, first those without which calls fail', () => {
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

  it('what an operator reads of an API is a line that shows what differs, and its page shows the last hour of its cap', () => {
    const hour = {
      calls: [...Array(58).fill(0), 40, 4],
      failed: [...Array(59).fill(0), 4],
      sent: [...Array(58).fill(0), 5, 4],
    }
    const shown = page({ ...well, upstreams: [row('a', { hour })] })['a hour'] ?? ''
    assert.match(shown, /aria-label="a, calls of the last hour: 40 a minute at most, 4 failed"/)
    assert.match(
      shown,
      /<path d="M116 16v-16h1\.4v16zM118 16v-2h1\.4v2z"><\/path><path class="bad" d="M118 16v-2h1\.4v2z">/,
    )
    const facts = Object.fromEntries(apiFacts(row('a', { hour }), NOW))
    assert.match(
      `${facts['Cap left']}`,
      /aria-label="a, cap used in the last hour: 50 % at most in a minute"><path d="M116 16v-8h/,
    )
    const line = (more: Partial<UpstreamRow>) =>
      Object.values(rowCells(row('a', more), NOW)).map((cell) => cell.replace(/<[^>]*>/g, '').trim())
    assert.deepEqual(line({}), ['● Healthy', '0', '0', '–', '0 %', '0', '0', '0 scheduled', ''])
    const unknown = { recent: null, queue: null, cap: null, health: null }
    assert.deepEqual(line(unknown), ['? Unknown', '?', '?', '?', '?', '?', '?', '?', ''])
    const busy = {
      health: { ...healthy, status: 'Degraded', score: 60, since: NOW - 90_000 } as const,
      recent: { ...calls({ OK: 3, UPSTREAM_TIMEOUT: 1 }), upstreamP95: 250 },
      queue: { waiting: 2, active: 4, delayed: 1, failed: 1, oldestMs: 3_000, isPaused: false },
      cap: {
        concurrency: 4,
        underWay: 1,
        nextSlotMs: 9_000,
        limitedUntil: null,
        rates: [{ max: 10, seconds: 60, left: 0 }],
      },
    }
    assert.deepEqual(line(busy), [
      ...['▲ Degraded 60 of 100 · 1 min', '4', '1 25 %', '250 ms', '100 % next in 9 s', '2 oldest 3 s', '4'],
      ...['1 scheduled 1 ended by a defect', ''],
    ])
    assert.match(line({ paused: 'refuse' })[0] ?? '', /Paused refuses calls/)
    assert.match(line({ cap: { ...busy.cap, limitedUntil: NOW + 60_000 } })[0] ?? '', /Limited until \d\d:\d\d:\d\d/)
  })

  it('what an operator reads of the APIs is in the order of their trouble, then of their calls, then of their names', () => {
    const rows = [
      row('a'),
      row('off', { enabled: false }),
      row('busy', { recent: calls({ OK: 9 }) }),
      row('held', { paused: 'hold' }),
      row('failing', { recent: calls({ OK: 1, UPSTREAM_TIMEOUT: 1 }) }),
      row('b', { recent: calls({ OK: 1 }) }),
    ]
    assert.deepEqual(
      byTrouble(rows).map(({ slug }) => slug),
      ['held', 'failing', 'busy', 'b', 'a', 'off'],
    )
  })

  it('what an operator reads never puts a mistake of callers among failures', () => {
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
