import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Compile } from 'typebox/compile'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import { failed, invalid } from '../../src/catalog/response-class.ts'
import sportsScores from '../../src/upstreams/sports-scores.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'
import { withDefaults } from '../support/upstream-call.ts'

const nfl = sportsScores.endpoints['/nfl'] as Endpoint
const nba = sportsScores.endpoints['/nba'] as Endpoint
const mlb = sportsScores.endpoints['/mlb'] as Endpoint

type Game = Record<string, unknown> & { home: Record<string, unknown>; away: Record<string, unknown> }

function interpret(endpoint: Endpoint, bodies: unknown[], parameters: Record<string, unknown> = {}, status = 200) {
  const answers = bodies.map((body) => ({ status, headers: {}, body }))
  return interpretAnswers({ upstream: sportsScores, endpoint }, answers, {
    parameters: withDefaults(endpoint, parameters),
    context: { now: 0 },
  })
}

function games(endpoint: Endpoint, bodies: unknown[], parameters: Record<string, unknown> = {}): Game[] {
  const result = interpret(endpoint, bodies, parameters)
  assert.ok('data' in result)
  assert.equal(result.data.count, (result.data.games as Game[]).length)
  return result.data.games as Game[]
}

function game(event: Record<string, unknown>): Game {
  const [only] = games(mlb, [{ events: [{ competitions: [{}], ...event }] }])
  assert.ok(only)
  return only
}

const ids = (list: Game[]) => list.map(({ id }) => id)
const dated = (id: string, date: string) => ({ id, date, competitions: [{}] })
const complete = (endpoint: Endpoint, dates: string | undefined, now = 0) =>
  endpoint.complete?.(withDefaults(endpoint, dates === undefined ? { limit: 10 } : { dates, limit: 10 }), { now })

test('the recorded answers map to the recorded data', () => {
  for (const endpoint of [nfl, nba, mlb]) {
    assert.deepEqual(interpret(endpoint, [endpoint.example.response]), { data: endpoint.example.data })
  }
})

test('a refused request is UPSTREAM_ERROR, because dates are checked before the request', () => {
  const body = { code: 400, message: 'Failed to get events endpoint.' }
  for (const endpoint of [nfl, nba, mlb]) {
    assert.deepEqual(interpret(endpoint, [body], {}, 400), { responseClass: failed() })
  }
})

test('a 5xx is UPSTREAM_ERROR', () => {
  assert.deepEqual(interpret(nba, [undefined], {}, 502), { responseClass: failed() })
})

test('a day without games is a success with an empty list', () => {
  assert.deepEqual(interpret(nba, [{ events: [] }]), { data: { league: 'NBA', count: 0, games: [] } })
})

test('an answer without events is UPSTREAM_INVALID_RESPONSE', () => {
  for (const body of [{}, [], null, { events: {} }]) {
    for (const endpoint of [nfl, nba, mlb]) assert.deepEqual(interpret(endpoint, [body]), { responseClass: invalid() })
  }
  const bodies = [{ events: [] }, {}]
  assert.deepEqual(interpret(nfl, bodies, { dates: '20250930-20251001' }), { responseClass: invalid() })
})

test('an answer none of whose events has competitions is invalid, and is not games without teams', () => {
  const named = { id: '1', date: '2025-09-05T00:20Z' }
  for (const competitions of [undefined, null, {}, [], 'x']) {
    const body = { events: [{ ...named, competitions }, named] }
    for (const endpoint of [nfl, nba, mlb]) assert.deepEqual(interpret(endpoint, [body]), { responseClass: invalid() })
  }
  assert.equal(games(nba, [{ events: [named, { ...named, competitions: [{}] }] }]).length, 2)
})

test('without dates no day is requested of the NFL, which means its current week', () => {
  assert.equal(complete(nfl, undefined)?.dates, undefined)
  assert.deepEqual(nfl.request(withDefaults(nfl, { limit: 10 }), { now: 0 }), {
    path: '/apis/site/v2/sports/football/nfl/scoreboard',
    query: { dates: undefined },
  })
})

test('without dates today in US Eastern time is requested of the NBA and MLB, which may be yesterday in UTC', () => {
  for (const endpoint of [nba, mlb]) {
    assert.equal(complete(endpoint, undefined, Date.parse('2026-05-03T03:59:00Z'))?.dates, '20260502')
    assert.equal(complete(endpoint, undefined, Date.parse('2026-05-03T04:00:00Z'))?.dates, '20260503')
    assert.equal(complete(endpoint, undefined, Date.parse('2026-01-03T04:59:00Z'))?.dates, '20260102')
  }
})

test('a day is sent unchanged', () => {
  assert.deepEqual(nfl.request(withDefaults(nfl, { dates: '20250904' }), { now: 0 }), {
    path: '/apis/site/v2/sports/football/nfl/scoreboard',
    query: { dates: '20250904' },
  })
  assert.deepEqual(mlb.request(withDefaults(mlb, { dates: '20250927' }), { now: 0 }), {
    path: '/apis/site/v2/sports/baseball/mlb/scoreboard',
    query: { dates: '20250927' },
  })
})

test('a range, which the upstream refuses, becomes a request for each calendar month that it touches', () => {
  const requests = nfl.request(withDefaults(nfl, { dates: '20251130-20260201', limit: 10 }), { now: 0 })
  const path = '/apis/site/v2/sports/football/nfl/scoreboard'
  assert.deepEqual(requests, [
    { path, query: { dates: '202511', limit: 500 } },
    { path, query: { dates: '202512', limit: 500 } },
    { path, query: { dates: '202601', limit: 500 } },
    { path, query: { dates: '202602', limit: 500 } },
  ])
})

test('a range within a month becomes a single request for that month', () => {
  assert.deepEqual(nfl.request(withDefaults(nfl, { dates: '20250904-20250908' }), { now: 0 }), [
    { path: '/apis/site/v2/sports/football/nfl/scoreboard', query: { dates: '202509', limit: 500 } },
  ])
})

test('a range of a single day becomes a request for that day', () => {
  assert.equal(complete(nfl, '20250904-20250904')?.dates, '20250904')
})

test('a range may touch twelve calendar months and not thirteen, also over the turn of a year', () => {
  assert.equal(complete(nfl, '20250930-20260201')?.dates, '20250930-20260201')
  assert.equal(complete(nfl, '20250331-20260201')?.dates, '20250331-20260201')
  assert.throws(() => complete(nfl, '20250228-20260201'), InvalidParameter)
  assert.throws(() => complete(nfl, '19000101-20250101'), InvalidParameter)
})

test('a day before the first league or after this century is refused before the request', () => {
  for (const [endpoint, dates] of [
    [nba, '00010101'],
    [mlb, '18751231'],
    [nfl, '99991231'],
    [nfl, '21001201-21010101'],
  ] as const)
    assert.throws(() => complete(endpoint, dates), InvalidParameter, dates)
  assert.equal(complete(mlb, '18760422')?.dates, '18760422')
})

test('a range keeps the games of its days in US Eastern time', () => {
  const events = [
    dated('before', '2025-09-05T03:59Z'),
    dated('first', '2025-09-05T04:00Z'),
    dated('late-evening', '2025-09-09T00:15Z'),
    dated('after', '2025-09-09T04:00Z'),
    dated('undated', 'TBD'),
  ]
  assert.deepEqual(ids(games(nfl, [{ events }], { dates: '20250905-20250908' })), ['first', 'late-evening'])
})

test('the games of all months of a range are in order of time, and a game that two months have occurs once', () => {
  const september = { events: [dated('b', '2025-09-30T23:00Z'), dated('a', '2025-09-28T17:00Z')] }
  const october = { events: [dated('c', '2025-10-02T00:15Z'), dated('b', '2025-09-30T23:00Z')] }
  const parameters = { dates: '20250928-20251005' }
  assert.deepEqual(ids(games(nfl, [september, october], parameters)), ['a', 'b', 'c'])
  assert.deepEqual(ids(games(nfl, [september, october], { ...parameters, limit: 2 })), ['a', 'b'])
})

test('the gateway applies limit, 10 by default, and never sends it for a day', () => {
  const events = Array.from({ length: 16 }, (_, index) => ({ id: String(index), competitions: [{}] }))
  for (const endpoint of [nfl, nba, mlb]) {
    assert.equal(games(endpoint, [{ events }]).length, 10)
    assert.equal(games(endpoint, [{ events }], { limit: 3 }).length, 3)
    assert.equal(games(endpoint, [{ events }], { limit: 100 }).length, 16)
    const request = endpoint.request(withDefaults(endpoint, { dates: '20250904', limit: 3 }), { now: 0 })
    assert.ok(!Array.isArray(request) && !('limit' in (request.query ?? {})))
    assert.equal(endpoint.cache?.key, undefined, 'the cut lists of different limits are stored apart')
  }
})

test('scores are fresh for seconds during a game, for minutes before it, and for a day when all games are over', () => {
  const night = Date.parse('2026-05-03T02:00:00Z')
  const seconds = (states: (string | null)[], dates: string | undefined, limit: number, now: number) => {
    const fresh = nba.cache?.seconds
    assert.ok(typeof fresh === 'function')
    const data = { games: states.map((state) => ({ status: { state } })) }
    return fresh(dates === undefined ? { limit } : { dates, limit }, data, { now })
  }
  assert.equal(seconds(['post', 'in', 'pre'], '20260502', 10, night), 30)
  assert.equal(seconds(['post', null], '20260502', 10, night), 30, 'an unknown state may be a game that is on')
  assert.equal(seconds(['pre', 'pre'], '20260502', 10, night), 300)
  assert.equal(seconds(['post', 'pre'], '20260502', 10, night), 300)
  assert.equal(seconds([], '20260502', 10, night), 300)
  assert.equal(seconds(['post', 'post'], '20260502', 10, night), 86_400)
  // A game that `limit` leaves out may still go on, until the morning.
  assert.equal(seconds(['post', 'post'], '20260502', 2, night), 300)
  assert.equal(seconds(['post', 'post'], '20260502', 2, night + 86_400_000), 86_400)
  assert.equal(seconds(['post', 'post'], '20260430-20260502', 2, night + 86_400_000), 86_400)
  // Without a day the NFL goes on to its next week.
  assert.equal(seconds(['post', 'post'], undefined, 10, night), 300)
})

test('dates that the calendar does not have, and ranges that end before they begin, are refused', () => {
  for (const dates of ['20250230', '20251301', '20250900', '20250905-20250904', '20250904-20250931']) {
    assert.throws(() => complete(nfl, dates), InvalidParameter, dates)
  }
  assert.throws(() => complete(nba, '20250229'), InvalidParameter)
  assert.equal(complete(nba, '20240229')?.dates, '20240229')
})

test('an answer to a range is invalid if no game says when it is', () => {
  const read = interpret(nfl, [{ events: [{ id: '1', startsAt: '2025-09-05T00:20Z' }] }], {
    dates: '20250904-20250908',
  })
  assert.deepEqual(read, { responseClass: invalid() })
})

test('only the NFL takes ranges, and limit is a whole number from 1', () => {
  const range = { dates: '20250904-20250908' }
  assert.ok(Compile(nfl.parameters).Check(range))
  for (const endpoint of [nba, mlb]) assert.ok(!Compile(endpoint.parameters).Check(range))
  for (const endpoint of [nfl, nba, mlb]) {
    const accepts = Compile(endpoint.parameters)
    for (const limit of [1, 100, 1_000]) assert.ok(accepts.Check({ dates: '20250904', limit }))
    for (const dates of ['2025-09-04', '202509', '2025090', '202509041']) assert.ok(!accepts.Check({ dates }), dates)
    for (const limit of [0, -1, 1.5]) assert.ok(!accepts.Check({ limit }))
  }
})

test('season and week come from each game, and only NFL games have a week', () => {
  const body = {
    season: { year: 1999 },
    week: { number: 9 },
    events: [
      { id: '1', season: { year: 2025, type: 2, slug: 'regular-season' }, week: { number: 3 }, competitions: [{}] },
    ],
  }
  const [withWeek] = games(nfl, [body])
  assert.deepEqual(withWeek?.season, { year: 2025, type: 2, slug: 'regular-season' })
  assert.equal(withWeek?.week, 3)
  const [without] = games(nba, [body])
  assert.ok(without && !('week' in without))
})

function played(state: string, competitors: unknown[]) {
  return game({ id: '1', status: { type: { state, completed: state === 'post' } }, competitions: [{ competitors }] })
}

test('a score is a number, and null before the game although the upstream sends 0', () => {
  const home = { homeAway: 'home', score: '0' }
  assert.equal(played('pre', [home]).home.score, null)
  assert.equal(played('in', [home]).home.score, 0)
  assert.equal(played('post', [{ ...home, score: '24' }]).home.score, 24)
  assert.equal(played('post', [{ ...home, score: '' }]).home.score, null)
})

test('homeAway says which side is home, never the order', () => {
  const away = { homeAway: 'away', team: { id: '2' } }
  const home = { homeAway: 'home', team: { id: '1' } }
  const result = played('in', [away, home])
  assert.deepEqual([result.home.id, result.away.id], ['1', '2'])
})

test('a missing side is null', () => {
  assert.equal(played('pre', []).home, null)
})

test('a game that was not played has no winner, unless by forfeit', () => {
  const winners = (status: unknown, won: boolean) => {
    const competitors = [
      { homeAway: 'home', score: '0', winner: won },
      { homeAway: 'away', score: '0', winner: false },
    ]
    const { home, away } = game({ id: '1', status, competitions: [{ competitors }] })
    return [home.winner, away.winner]
  }
  const over = { state: 'post', completed: true }
  assert.deepEqual(winners({ period: 0, type: { ...over, name: 'STATUS_POSTPONED' } }, false), [null, null])
  assert.deepEqual(winners({ period: 0, type: { ...over, name: 'STATUS_FORFEIT' } }, true), [true, false])
  assert.deepEqual(winners({ period: 4, type: { ...over, name: 'STATUS_FINAL' } }, false), [false, false], 'a tie')
})

test('winner is null until the end', () => {
  const loser = { homeAway: 'home', score: '1', winner: false }
  assert.equal(played('in', [loser]).home.winner, null)
  const suspended = { period: 5, type: { state: 'post', completed: false, name: 'STATUS_SUSPENDED' } }
  const stopped = game({ id: '1', status: suspended, competitions: [{ competitors: [loser] }] })
  assert.deepEqual([stopped.home.score, stopped.home.winner], [1, null])
  assert.equal(played('in', [{ homeAway: 'home' }]).home.winner, null)
  assert.equal(played('post', [{ homeAway: 'home', winner: false }]).home.winner, false)
})

test('a game that is over and was not completed is shown as such', () => {
  const type = { state: 'post', completed: false, name: 'STATUS_POSTPONED', description: 'Postponed', detail: 'Ppd' }
  assert.deepEqual(game({ id: '1', status: { type, period: 0, displayClock: '0:00' } }).status, {
    state: 'post',
    name: 'STATUS_POSTPONED',
    description: 'Postponed',
    detail: 'Ppd',
    completed: false,
    period: 0,
    clock: '0:00',
  })
})

test('a placeholder for a time is marked, and undecided teams are TBD', () => {
  const team = { id: '-1', abbreviation: 'TBD', displayName: 'TBD' }
  const result = game({ id: '1', competitions: [{ timeValid: false, competitors: [{ homeAway: 'home', team }] }] })
  assert.equal(result.time_confirmed, false)
  assert.deepEqual([result.home.id, result.home.abbreviation], ['-1', 'TBD'])
})

test('the name of a team is its display name, and a guest team may have no logo and no record', () => {
  const team = { id: '1', displayName: 'Athletics', name: 'Athletics', location: 'Athletics', logo: '' }
  const { home } = played('pre', [{ homeAway: 'home', team }])
  assert.deepEqual([home.name, home.logo, home.record], ['Athletics', null, null])
})

test('the record of a team is its total record', () => {
  const records = [
    { type: 'home', summary: '5-1' },
    { type: 'total', summary: '9-3' },
  ]
  assert.equal(played('pre', [{ homeAway: 'home', records }]).home.record, '9-3')
})

test('a game without venue, broadcasts and notes has null, an empty list and null', () => {
  const { venue, broadcasts, note } = game({ id: '1', competitions: [{}] })
  assert.deepEqual([venue, broadcasts, note], [null, [], null])
})

test('the networks of all broadcasts are a single list', () => {
  const broadcasts = [{ market: 'home', names: ['YES', 'Prime'] }, { market: 'away', names: ['MASN'] }, {}]
  assert.deepEqual(game({ id: '1', competitions: [{ broadcasts }] }).broadcasts, ['YES', 'Prime', 'MASN'])
})

test('a body of several MB is accepted', () => {
  assert.ok((sportsScores.bodyBytesMax ?? 0) >= 8 * 1024 * 1024)
})

test('in all leagues a score is shown only if play has begun, whatever the upstream says about completion', () => {
  const score = (endpoint: Endpoint, status: Record<string, unknown> | undefined) => {
    const competitors = [
      { homeAway: 'home', score: '0' },
      { homeAway: 'away', score: '0' },
    ]
    const [only] = games(endpoint, [{ events: [{ id: '1', status, competitions: [{ competitors }] }] }])
    assert.ok(only)
    assert.equal(only.home.score, only.away.score)
    return only.home.score
  }
  const type = (name: string, state: string, completed: boolean) => ({ name: `STATUS_${name}`, state, completed })
  for (const endpoint of [nfl, nba, mlb]) {
    for (const completed of [false, true]) {
      for (const name of ['POSTPONED', 'CANCELED', 'CANCELLED', 'FORFEIT', 'ABANDONED', 'NO_CONTEST']) {
        for (const state of ['post', 'in', 'pre']) {
          assert.equal(score(endpoint, { period: 0, type: type(name, state, completed) }), null, name)
          assert.equal(score(endpoint, { type: type(name, state, completed) }), null, name)
        }
      }
    }
    for (const words of [
      { description: 'Postponed' },
      { detail: 'Ppd' },
      { shortDetail: 'PPD' },
      { name: 'STATUS_IF_NECESSARY' },
    ])
      assert.equal(score(endpoint, { period: 0, type: { state: 'post', completed: true, ...words } }), null)
    for (const unknown of [undefined, {}, { type: { completed: false } }, { period: '0', type: { state: 'post' } }])
      assert.equal(score(endpoint, unknown), null, 'nothing shows that play has begun')
    assert.equal(score(endpoint, { period: '2', type: { state: 'in' } }), 0)
    assert.equal(score(endpoint, { period: 0, type: type('FORFEIT', 'post', false) }), null)
    assert.equal(score(endpoint, { period: 0, type: type('DELAYED', 'in', false) }), null, 'before the first pitch')
    assert.equal(score(endpoint, { period: 1, type: type('RAIN_DELAY', 'in', false) }), 0)
    assert.equal(score(endpoint, { period: 5, type: type('SUSPENDED', 'post', false) }), 0)
    assert.equal(score(endpoint, { period: 5, type: type('POSTPONED', 'post', false) }), 0, 'stopped in play')
    assert.equal(score(endpoint, { period: 4, type: type('FINAL', 'post', true) }), 0)
    assert.equal(score(endpoint, { period: 0, type: type('FINAL', 'post', true) }), 0)
  }
})
