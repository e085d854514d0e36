import Type from 'typebox'
import { dateIn, isCalendarDate } from '../catalog/calendar.ts'
import { type Fields, field, record, required, type Source } from '../catalog/fields.ts'
import { filledText, items, members, numeric, objects, text, texts } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { invalid } from '../catalog/response-class.ts'
import { defaulted, otherNames, REQUESTS_MAX } from '../catalog/shared-parameters.ts'
import { type CallContext, endpoint, InvalidParameter, path, type Upstream } from '../catalog/upstream.ts'

const limit = defaulted(Type.Integer({ minimum: 1, default: 10, description: 'Maximum number of games' }))

const date = Type.Optional(
  Type.String({
    minLength: 8,
    maxLength: 8,
    pattern: '^\\d{8}$',
    description: 'Day in US Eastern time, YYYYMMDD; default: today',
  }),
)

const cache = { seconds: secondsFresh, staleWhileRevalidateSeconds: 30, staleIfErrorSeconds: lifetime.hour }

/** The days by which the upstream counts. */
const easternDate = dateIn('America/New_York')

const HALF_DAY_MS = 43_200_000

/** How the upstream names what keeps a game from being played. */
const NOT_PLAYED = /postponed|\bppd\b|cancel|abandon|forfeit|no.?contest|if.?necessary|not.?necessary/i

const heading = {
  id: field.text('id', 'Number of the game, as text'),
  date: field.text('date', 'Start, ISO 8601 without seconds, UTC'),
  name: field.text('name', 'Visitor at home team, in words'),
  short_name: field.text('shortName', 'Abbreviations of the teams: KC VS LAC'),
  season: field.record('season', 'Season of the game', {
    year: field.integer('year', 'Year of the season'),
    type: field.integer('type', 'Part of the season: 1 pre-season, 2 regular season, 3 post-season'),
    slug: field.text('slug', 'Part of the season, such as regular-season'),
  }),
}

const team = (side: 'home' | 'away', description: string) =>
  field.nullableRecord((event) => competitorOf(event, side), description, {
    id: field.text('team.id', 'Number of the team, as text; -1 or -2 while the team is not known'),
    name: field.text('team.displayName', 'Name of the team'),
    abbreviation: field.text('team.abbreviation', 'Short form of the name; TBD while the team is not known'),
    logo: field.filledText('team.logo', 'Picture of the logo'),
    score: field.integer(
      ({ score }) => numeric(score),
      'Points or runs; null until play has begun, and for a game that was not played',
    ),
    winner: field.flag(
      'winner',
      'Whether it won; null before the end, and for a game that nobody won by playing or by forfeit',
    ),
    record: field.text(
      ({ records }) => objects(records).find(({ type }) => type === 'total')?.summary,
      'Wins-losses of the season',
    ),
  })

const details = {
  status: field.record('status', 'How the game stands', {
    state: field.text('type.state', 'pre before the game, in while it is played, post after it'),
    name: field.text('type.name', 'STATUS_FINAL, STATUS_RAIN_DELAY and many others'),
    description: field.text('type.description', 'Status in words'),
    detail: field.text('type.detail', 'Status in a line, with time or period'),
    completed: field.flag(
      'type.completed',
      'Whether it was played to the end; false with post: cancelled, postponed or suspended',
    ),
    period: field.integer('period', 'Quarter or inning'),
    clock: field.text('displayClock', 'Time left in the period'),
  }),
  time_confirmed: field.flag(
    (event) => competitionOf(event).timeValid,
    'Whether the time of the start is known; false: it is a placeholder',
  ),
  neutral_site: field.flag((event) => competitionOf(event).neutralSite, 'Whether neither team is at home'),
  venue: field.nullableRecord((event) => competitionOf(event).venue, 'Where it is played', {
    name: field.text('fullName', 'Name of the venue'),
    city: field.text('address.city', 'City of the venue'),
    state: field.text('address.state', 'State of the venue'),
    country: field.text('address.country', 'Country of the venue'),
  }),
  broadcasts: field.texts(
    (event) => objects(competitionOf(event).broadcasts).flatMap(({ names }) => texts(names)),
    'Names of the broadcasters',
  ),
  note: field.filledText(
    (event) =>
      objects(competitionOf(event).notes)
        .map(({ headline }) => headline)
        .find(filledText),
    'Title of the game, such as the round of a final',
  ),
  home: team('home', 'Home team'),
  away: team('away', 'Visiting team'),
}

const scoresOf = <Game extends Fields>(game: Game) =>
  record({
    league: required.text('league', 'NFL, NBA or MLB'),
    count: required.integer(({ games }) => items(games).length, 'Number of games in the answer'),
    games: required.records('games', 'Games found', game),
  })

const scores = scoresOf({ ...heading, ...details })

const weeklyScores = scoresOf({ ...heading, week: field.integer('week.number', 'Week of the season'), ...details })

const sportsScores: Upstream = {
  displayName: 'Sports scores',
  category: 'sports',
  description: 'Games of the NFL, NBA and MLB with scores, status, teams and venue, from the ESPN scoreboards.',
  tags: ['sports', 'scores', 'nfl', 'nba', 'mlb'],
  keywords: [
    'football',
    'american',
    'soccer',
    'basketball',
    'baseball',
    'game',
    'match',
    'result',
    'league',
    'team',
    'fixture',
    'standings',
  ],
  tierRequired: 'developer',
  terms: {
    summary:
      'Unofficial and unsupported: it may change or be blocked without notice. The ESPN/Disney terms of use apply.',
    url: 'https://disneytermsofuse.com',
  },
  baseUrl: 'https://site.api.espn.com',
  // No limit is published, but excessive use may be blocked.
  caps: { concurrency: 4, rates: [{ max: 60, seconds: 60 }] },
  // A day is up to 2 MB, a month of the NFL several times that.
  bodyBytesMax: 16 * 1024 * 1024,
  // A day without games: a small answer.
  probe: {
    request: { path: path`/apis/site/v2/sports/basketball/nba/scoreboard`, query: { dates: '20250704' } },
    everySeconds: 300,
  },
  reservedParameters: ['callback'],
  mayLack: ['record', 'logo', 'week', 'games', 'broadcasts'],
  endpoints: {
    '/nfl': endpoint({
      description: 'NFL games of a day, a range of days or the current week.',
      parameters: Type.Object({
        dates: Type.Optional(
          Type.String({
            minLength: 8,
            maxLength: 17,
            pattern: '^\\d{8}(-\\d{8})?$',
            description: `Day YYYYMMDD or range YYYYMMDD-YYYYMMDD in US Eastern time, touching at most ${REQUESTS_MAX} calendar months; default: the current week`,
          }),
        ),
        limit,
      }),
      aliases: { limit: otherNames('count', 'limit') },
      data: weeklyScores.schema,
      cache,
      complete: (parameters) => {
        if (parameters.dates === undefined) return parameters
        const [first = '', last = first] = parameters.dates.split('-')
        checkRange(first, last)
        return { ...parameters, dates: first === last ? first : `${first}-${last}` }
      },
      // The upstream refuses ranges, but takes a month; without `limit` that would end after 100
      // games, and a limit of 600 or more gives only 25.
      request: ({ dates }) => {
        const scoreboard = path`/apis/site/v2/sports/football/nfl/scoreboard`
        if (!dates?.includes('-')) return { path: scoreboard, query: { dates } }
        return monthsOf(dates).map((month) => ({ path: scoreboard, query: { dates: month, limit: 500 } }))
      },
      map: ({ bodies, parameters: { dates, limit } }) => {
        const events = readEvents(bodies)
        const wanted = events && dates?.includes('-') ? withinRange(events, dates) : events
        return weeklyScores.read({ league: 'NFL', games: wanted?.slice(0, limit) }) ?? invalid()
      },
      example: recordedNfl(),
    }),
    '/nba': endpoint({
      description: 'NBA games of a day.',
      parameters: Type.Object({ dates: date, limit }),
      aliases: { limit: otherNames('count', 'limit') },
      data: scores.schema,
      cache,
      complete: completeDay,
      request: ({ dates }) => ({ path: path`/apis/site/v2/sports/basketball/nba/scoreboard`, query: { dates } }),
      map: ({ bodies, parameters: { limit } }) =>
        scores.read({ league: 'NBA', games: readEvents(bodies)?.slice(0, limit) }) ?? invalid(),
      example: recordedNba(),
    }),
    '/mlb': endpoint({
      description: 'MLB games of a day.',
      parameters: Type.Object({ dates: date, limit }),
      aliases: { limit: otherNames('count', 'limit') },
      data: scores.schema,
      cache,
      complete: completeDay,
      request: ({ dates }) => ({ path: path`/apis/site/v2/sports/baseball/mlb/scoreboard`, query: { dates } }),
      map: ({ bodies, parameters: { limit } }) =>
        scores.read({ league: 'MLB', games: readEvents(bodies)?.slice(0, limit) }) ?? invalid(),
      example: recordedMlb(),
    }),
  },
}

export default sportsScores

/** Always a day: without one the upstream may leave out games of today that are yet to come. */
function completeDay<Parameters extends { dates?: string }>(parameters: Parameters, { now }: CallContext): Parameters {
  const dates = parameters.dates ?? easternDay(now)
  checkDay(dates)
  return { ...parameters, dates }
}

function checkDay(day: string): void {
  if (!isCalendarDate(`${day.slice(0, 4)}-${day.slice(4, 6)}-${day.slice(6)}`))
    throw new InvalidParameter('dates', `${day} is not a calendar date YYYYMMDD`)
}

function checkRange(first: string, last: string): void {
  checkDay(first)
  checkDay(last)
  if (last < first) throw new InvalidParameter('dates', 'the range ends before it begins')
  // A range costs one request for each calendar month it touches.
  if (monthNumber(last) - monthNumber(first) >= REQUESTS_MAX)
    throw new InvalidParameter('dates', `the range touches more than ${REQUESTS_MAX} calendar months`)
}

/** Months since the year 0 of a day YYYYMMDD. */
function monthNumber(day: string): number {
  return Number(day.slice(0, 4)) * 12 + Number(day.slice(4, 6)) - 1
}

/** The calendar months, YYYYMM, that a range touches. */
function monthsOf(range: string): string[] {
  const [first = '', last = ''] = range.split('-')
  const months: string[] = []
  for (let month = monthNumber(first); month <= monthNumber(last); month++) {
    months.push(String(Math.floor(month / 12)).padStart(4, '0') + String((month % 12) + 1).padStart(2, '0'))
  }
  return months
}

/** The day, YYYYMMDD, in US Eastern time. */
function easternDay(time: number): string {
  return easternDate(time).replaceAll('-', '')
}

/** By the games given: a game is on, all are to come or over for today, all are over for good. */
function secondsFresh(
  { dates, limit }: { dates?: string; limit: number },
  data: Record<string, unknown>,
  { now }: CallContext,
): number {
  const states = items(data.games).map((game) => members(members(members(game).status)).state)
  if (states.some((state) => state !== 'pre' && state !== 'post')) return 30
  // Without a day the upstream goes on to the next week by itself.
  if (dates === undefined || states.length === 0 || states.includes('pre')) return 300
  // Games that `limit` cut off may be on until the night is over, and the upstream reorders its
  // list.
  const isWhole = states.length < limit || dates.slice(-8) < easternDay(now - HALF_DAY_MS)
  return isWhole ? lifetime.day : 300
}

/** The events of all answers; undefined when one of the answers has no list of them. */
function readEvents(bodies: unknown[]): Source[] | undefined {
  const lists = bodies.map((body) => members(body).events)
  return lists.every(Array.isArray) ? lists.flatMap(objects) : undefined
}

/**
 * The events of the days of a range, each once though two months may both have it, in order of
 * time.
 */
function withinRange(events: Source[], range: string): Source[] {
  const [first = '', last = ''] = range.split('-')
  return [...new Map(events.map((event) => [event.id ?? event, event])).values()]
    .map((event) => ({ event, time: Date.parse(text(event.date) ?? '') }))
    .filter(({ time }) => !Number.isNaN(time) && easternDay(time) >= first && easternDay(time) <= last)
    .sort((one, other) => one.time - other.time)
    .map(({ event }) => event)
}

function competitionOf(event: Source): Source {
  return members(items(event.competitions)[0])
}

/**
 * The competitors come in any order, and where there was no play with a score of 0 and without a
 * winner.
 */
function competitorOf(event: Source, side: 'home' | 'away'): Source | undefined {
  const competitors = objects(competitionOf(event).competitors)
  const competitor = competitors.find(({ homeAway }) => homeAway === side)
  if (!competitor || hasBegun(event)) return competitor
  // A forfeit has a winner without play.
  const isDecided = competitors.some(({ winner }) => winner === true)
  return { ...competitor, score: null, ...(isDecided ? {} : { winner: null }) }
}

/**
 * A game that was called off or awarded is over before its first period, whatever the upstream says
 * of its completion.
 */
function hasBegun({ status }: Source): boolean {
  const { period, type } = members(status)
  const { state, completed, ...named } = members(type)
  const periods = numeric(period)
  if (state !== 'pre' && periods !== null && periods > 0) return true
  if (state !== 'in' && state !== 'post') return false
  const words = [named.name, named.description, named.detail, named.shortDetail]
  return !words.some((given) => NOT_PLAYED.test(text(given) ?? '')) && (periods === null || completed === true)
}

function recordedNfl() {
  return {
    parameters: {},
    // biome-ignore format: as recorded
    response: {
      leagues: [{ id: '28', name: 'National Football League', abbreviation: 'NFL', slug: 'nfl' }], season: { type: 2, year: 2025 }, week: { number: 1 },
      events: [
        {
          id: '401772714', date: '2025-09-06T00:00Z', name: 'Kansas City Chiefs at Los Angeles Chargers', shortName: 'KC VS LAC',
          season: { year: 2025, type: 2, slug: 'regular-season' }, week: { number: 1 },
          competitions: [
            {
              id: '401772714', timeValid: true, neutralSite: true,
              venue: { id: '8748', fullName: 'Corinthians Arena', address: { city: 'Sao Paulo', country: 'Brazil' }, indoor: false },
              competitors: [
                {
                  id: '24', homeAway: 'home',
                  team: {
                    id: '24', abbreviation: 'LAC', displayName: 'Los Angeles Chargers', logo: 'https://a.espncdn.com/i/teamlogos/nfl/500/scoreboard/lac.png',
                  },
                  score: '0', records: [{ name: 'overall', type: 'total', summary: '0-0' }],
                },
                {
                  id: '12', homeAway: 'away',
                  team: { id: '12', abbreviation: 'KC', displayName: 'Kansas City Chiefs', logo: 'https://a.espncdn.com/i/teamlogos/nfl/500/scoreboard/kc.png' },
                  score: '0', records: [{ name: 'overall', type: 'total', summary: '0-0' }],
                },
              ],
              notes: [{ type: 'event', headline: 'NFL São Paulo Game' }], broadcasts: [{ market: 'national', names: ['YouTube'] }],
            },
          ],
          status: {
            clock: 0.0, displayClock: '0:00', period: 0,
            type: { name: 'STATUS_SCHEDULED', state: 'pre', completed: false, description: 'Scheduled', detail: 'Fri, September 5th at 8:00 PM EDT' },
          },
        },
        {
          id: '401772510', date: '2025-09-05T00:20Z', name: 'Dallas Cowboys at Philadelphia Eagles', shortName: 'DAL @ PHI',
          season: { year: 2025, type: 2, slug: 'regular-season' }, week: { number: 1 },
          competitions: [
            {
              id: '401772510', timeValid: true, neutralSite: false,
              venue: { id: '3806', fullName: 'Lincoln Financial Field', address: { city: 'Philadelphia', state: 'PA', country: 'USA' }, indoor: false },
              competitors: [
                {
                  id: '21', homeAway: 'home', winner: true,
                  team: { id: '21', abbreviation: 'PHI', displayName: 'Philadelphia Eagles', logo: 'https://a.espncdn.com/i/teamlogos/nfl/500/scoreboard/phi.png' },
                  score: '24', records: [{ name: 'overall', type: 'total', summary: '1-0' }],
                },
                {
                  id: '6', homeAway: 'away', winner: false,
                  team: { id: '6', abbreviation: 'DAL', displayName: 'Dallas Cowboys', logo: 'https://a.espncdn.com/i/teamlogos/nfl/500/scoreboard/dal.png' },
                  score: '20', records: [{ name: 'overall', type: 'total', summary: '0-1' }],
                },
              ],
              notes: [], broadcasts: [{ market: 'national', names: ['NBC'] }],
            },
          ],
          status: {
            clock: 0.0, displayClock: '0:00', period: 4, type: { name: 'STATUS_FINAL', state: 'post', completed: true, description: 'Final', detail: 'Final' },
          },
        },
      ],
    },
    // biome-ignore format: as recorded
    data: {
      league: 'NFL', count: 2,
      games: [
        {
          id: '401772714', date: '2025-09-06T00:00Z', name: 'Kansas City Chiefs at Los Angeles Chargers', short_name: 'KC VS LAC',
          season: { year: 2025, type: 2, slug: 'regular-season' }, week: 1,
          status: {
            state: 'pre', name: 'STATUS_SCHEDULED', description: 'Scheduled', detail: 'Fri, September 5th at 8:00 PM EDT', completed: false, period: 0,
            clock: '0:00',
          },
          time_confirmed: true, neutral_site: true, venue: { name: 'Corinthians Arena', city: 'Sao Paulo', state: null, country: 'Brazil' },
          broadcasts: ['YouTube'], note: 'NFL São Paulo Game',
          home: {
            id: '24', name: 'Los Angeles Chargers', abbreviation: 'LAC', logo: 'https://a.espncdn.com/i/teamlogos/nfl/500/scoreboard/lac.png', score: null,
            winner: null, record: '0-0',
          },
          away: {
            id: '12', name: 'Kansas City Chiefs', abbreviation: 'KC', logo: 'https://a.espncdn.com/i/teamlogos/nfl/500/scoreboard/kc.png', score: null,
            winner: null, record: '0-0',
          },
        },
        {
          id: '401772510', date: '2025-09-05T00:20Z', name: 'Dallas Cowboys at Philadelphia Eagles', short_name: 'DAL @ PHI',
          season: { year: 2025, type: 2, slug: 'regular-season' }, week: 1,
          status: { state: 'post', name: 'STATUS_FINAL', description: 'Final', detail: 'Final', completed: true, period: 4, clock: '0:00' }, time_confirmed: true,
          neutral_site: false, venue: { name: 'Lincoln Financial Field', city: 'Philadelphia', state: 'PA', country: 'USA' }, broadcasts: ['NBC'], note: null,
          home: {
            id: '21', name: 'Philadelphia Eagles', abbreviation: 'PHI', logo: 'https://a.espncdn.com/i/teamlogos/nfl/500/scoreboard/phi.png', score: 24,
            winner: true, record: '1-0',
          },
          away: {
            id: '6', name: 'Dallas Cowboys', abbreviation: 'DAL', logo: 'https://a.espncdn.com/i/teamlogos/nfl/500/scoreboard/dal.png', score: 20, winner: false,
            record: '0-1',
          },
        },
      ],
    },
  }
}

function recordedNba() {
  return {
    parameters: { dates: '20260502' },
    // biome-ignore format: as recorded
    response: {
      leagues: [{ id: '46', name: 'National Basketball Association', abbreviation: 'NBA', slug: 'nba' }], season: { type: 3, year: 2026 },
      day: { date: '2026-05-02' },
      events: [
        {
          id: '401869412', date: '2026-05-02T23:30Z', name: 'Philadelphia 76ers at Boston Celtics', shortName: 'PHI @ BOS',
          season: { year: 2026, type: 3, slug: 'post-season' },
          competitions: [
            {
              id: '401869412', timeValid: true, neutralSite: false,
              venue: { id: '1824', fullName: 'TD Garden', address: { city: 'Boston', state: 'MA' }, indoor: true },
              competitors: [
                {
                  id: '2', homeAway: 'home',
                  team: { id: '2', abbreviation: 'BOS', displayName: 'Boston Celtics', logo: 'https://a.espncdn.com/i/teamlogos/nba/500/scoreboard/bos.png' },
                  score: '87', records: [{ name: 'overall', type: 'total', summary: '56-26' }],
                },
                {
                  id: '20', homeAway: 'away',
                  team: { id: '20', abbreviation: 'PHI', displayName: 'Philadelphia 76ers', logo: 'https://a.espncdn.com/i/teamlogos/nba/500/scoreboard/phi.png' },
                  score: '92', records: [{ name: 'overall', type: 'total', summary: '45-37' }],
                },
              ],
              notes: [{ type: 'event', headline: 'East 1st Round - Game 7' }], broadcasts: [{ market: 'national', names: ['NBC'] }],
            },
          ],
          status: {
            clock: 521.0, displayClock: '8:41', period: 4,
            type: { name: 'STATUS_IN_PROGRESS', state: 'in', completed: false, description: 'In Progress', detail: '8:41 - 4th Quarter' },
          },
        },
      ],
    },
    // biome-ignore format: as recorded
    data: {
      league: 'NBA', count: 1,
      games: [
        {
          id: '401869412', date: '2026-05-02T23:30Z', name: 'Philadelphia 76ers at Boston Celtics', short_name: 'PHI @ BOS',
          season: { year: 2026, type: 3, slug: 'post-season' },
          status: { state: 'in', name: 'STATUS_IN_PROGRESS', description: 'In Progress', detail: '8:41 - 4th Quarter', completed: false, period: 4, clock: '8:41' },
          time_confirmed: true, neutral_site: false, venue: { name: 'TD Garden', city: 'Boston', state: 'MA', country: null }, broadcasts: ['NBC'],
          note: 'East 1st Round - Game 7',
          home: {
            id: '2', name: 'Boston Celtics', abbreviation: 'BOS', logo: 'https://a.espncdn.com/i/teamlogos/nba/500/scoreboard/bos.png', score: 87, winner: null,
            record: '56-26',
          },
          away: {
            id: '20', name: 'Philadelphia 76ers', abbreviation: 'PHI', logo: 'https://a.espncdn.com/i/teamlogos/nba/500/scoreboard/phi.png', score: 92,
            winner: null, record: '45-37',
          },
        },
      ],
    },
  }
}

function recordedMlb() {
  return {
    parameters: { dates: '20250927' },
    // biome-ignore format: as recorded
    response: {
      leagues: [{ id: '10', name: 'Major League Baseball', abbreviation: 'MLB', slug: 'mlb' }],
      events: [
        {
          id: '401697308', date: '2025-09-27T17:05Z', name: 'Baltimore Orioles at New York Yankees', shortName: 'BAL @ NYY',
          season: { year: 2025, type: 2, slug: 'regular-season' },
          competitions: [
            {
              id: '401697308', timeValid: true, neutralSite: false,
              venue: { id: '208', fullName: 'Yankee Stadium', address: { city: 'Bronx', state: 'New York' }, indoor: false },
              competitors: [
                {
                  id: '10', homeAway: 'home', winner: true,
                  team: { id: '10', abbreviation: 'NYY', displayName: 'New York Yankees', logo: 'https://a.espncdn.com/i/teamlogos/mlb/500/scoreboard/nyy.png' },
                  score: '6', records: [{ name: 'overall', type: 'total', summary: '93-68' }],
                },
                {
                  id: '1', homeAway: 'away', winner: false,
                  team: { id: '1', abbreviation: 'BAL', displayName: 'Baltimore Orioles', logo: 'https://a.espncdn.com/i/teamlogos/mlb/500/scoreboard/bal.png' },
                  score: '1', records: [{ name: 'overall', type: 'total', summary: '75-86' }],
                },
              ],
              notes: [], broadcasts: [{ market: 'away', names: ['MLB.TV'] }],
            },
          ],
          status: {
            clock: 0.0, displayClock: '0:00', period: 9, type: { name: 'STATUS_FINAL', state: 'post', completed: true, description: 'Final', detail: 'Final' },
          },
        },
        {
          id: '401697317', date: '2025-09-27T18:20Z', name: 'St. Louis Cardinals at Chicago Cubs', shortName: 'STL @ CHC',
          season: { year: 2025, type: 2, slug: 'regular-season' },
          competitions: [
            {
              id: '401697317', timeValid: true, neutralSite: false,
              venue: { id: '16', fullName: 'Wrigley Field', address: { city: 'Chicago', state: 'Illinois' }, indoor: false },
              competitors: [
                {
                  id: '16', homeAway: 'home',
                  team: { id: '16', abbreviation: 'CHC', displayName: 'Chicago Cubs', logo: 'https://a.espncdn.com/i/teamlogos/mlb/500/scoreboard/chc.png' },
                  score: '4', records: [{ name: 'overall', type: 'total', summary: '90-70' }],
                },
                {
                  id: '24', homeAway: 'away',
                  team: { id: '24', abbreviation: 'STL', displayName: 'St. Louis Cardinals', logo: 'https://a.espncdn.com/i/teamlogos/mlb/500/scoreboard/stl.png' },
                  score: '1', records: [{ name: 'overall', type: 'total', summary: '78-82' }],
                },
              ],
              notes: [], broadcasts: [{ market: 'away', names: ['MLB.TV'] }],
            },
          ],
          status: {
            clock: 0.0, displayClock: '0:00', period: 7,
            type: { name: 'STATUS_IN_PROGRESS', state: 'in', completed: false, description: 'In Progress', detail: 'Top 7th' },
          },
        },
        {
          id: '401697309', date: '2025-09-27T20:05Z', name: 'Chicago White Sox at Washington Nationals', shortName: 'CHW @ WSH',
          season: { year: 2025, type: 2, slug: 'regular-season' },
          competitions: [
            {
              id: '401697309', timeValid: true, neutralSite: false,
              venue: { id: '89', fullName: 'Nationals Park', address: { city: 'Washington', state: 'District of Columbia' }, indoor: false },
              competitors: [
                {
                  id: '20', homeAway: 'home',
                  team: {
                    id: '20', abbreviation: 'WSH', displayName: 'Washington Nationals', logo: 'https://a.espncdn.com/i/teamlogos/mlb/500/scoreboard/wsh.png',
                  },
                  score: '0', records: [{ name: 'overall', type: 'total', summary: '65-95' }],
                },
                {
                  id: '4', homeAway: 'away',
                  team: { id: '4', abbreviation: 'CHW', displayName: 'Chicago White Sox', logo: 'https://a.espncdn.com/i/teamlogos/mlb/500/scoreboard/chw.png' },
                  score: '0', records: [{ name: 'overall', type: 'total', summary: '59-101' }],
                },
              ],
              notes: [], broadcasts: [{ market: 'away', names: ['MLB.TV'] }],
            },
          ],
          status: {
            clock: 0.0, displayClock: '0:00', period: 1,
            type: { name: 'STATUS_RAIN_DELAY', state: 'in', completed: false, description: 'Rain Delay', detail: 'Rain Delay, Top 1st' },
          },
        },
      ],
    },
    // biome-ignore format: as recorded
    data: {
      league: 'MLB', count: 3,
      games: [
        {
          id: '401697308', date: '2025-09-27T17:05Z', name: 'Baltimore Orioles at New York Yankees', short_name: 'BAL @ NYY',
          season: { year: 2025, type: 2, slug: 'regular-season' },
          status: { state: 'post', name: 'STATUS_FINAL', description: 'Final', detail: 'Final', completed: true, period: 9, clock: '0:00' }, time_confirmed: true,
          neutral_site: false, venue: { name: 'Yankee Stadium', city: 'Bronx', state: 'New York', country: null }, broadcasts: ['MLB.TV'], note: null,
          home: {
            id: '10', name: 'New York Yankees', abbreviation: 'NYY', logo: 'https://a.espncdn.com/i/teamlogos/mlb/500/scoreboard/nyy.png', score: 6, winner: true,
            record: '93-68',
          },
          away: {
            id: '1', name: 'Baltimore Orioles', abbreviation: 'BAL', logo: 'https://a.espncdn.com/i/teamlogos/mlb/500/scoreboard/bal.png', score: 1, winner: false,
            record: '75-86',
          },
        },
        {
          id: '401697317', date: '2025-09-27T18:20Z', name: 'St. Louis Cardinals at Chicago Cubs', short_name: 'STL @ CHC',
          season: { year: 2025, type: 2, slug: 'regular-season' },
          status: { state: 'in', name: 'STATUS_IN_PROGRESS', description: 'In Progress', detail: 'Top 7th', completed: false, period: 7, clock: '0:00' },
          time_confirmed: true, neutral_site: false, venue: { name: 'Wrigley Field', city: 'Chicago', state: 'Illinois', country: null }, broadcasts: ['MLB.TV'],
          note: null,
          home: {
            id: '16', name: 'Chicago Cubs', abbreviation: 'CHC', logo: 'https://a.espncdn.com/i/teamlogos/mlb/500/scoreboard/chc.png', score: 4, winner: null,
            record: '90-70',
          },
          away: {
            id: '24', name: 'St. Louis Cardinals', abbreviation: 'STL', logo: 'https://a.espncdn.com/i/teamlogos/mlb/500/scoreboard/stl.png', score: 1,
            winner: null, record: '78-82',
          },
        },
        {
          id: '401697309', date: '2025-09-27T20:05Z', name: 'Chicago White Sox at Washington Nationals', short_name: 'CHW @ WSH',
          season: { year: 2025, type: 2, slug: 'regular-season' },
          status: { state: 'in', name: 'STATUS_RAIN_DELAY', description: 'Rain Delay', detail: 'Rain Delay, Top 1st', completed: false, period: 1, clock: '0:00' },
          time_confirmed: true, neutral_site: false, venue: { name: 'Nationals Park', city: 'Washington', state: 'District of Columbia', country: null },
          broadcasts: ['MLB.TV'], note: null,
          home: {
            id: '20', name: 'Washington Nationals', abbreviation: 'WSH', logo: 'https://a.espncdn.com/i/teamlogos/mlb/500/scoreboard/wsh.png', score: 0,
            winner: null, record: '65-95',
          },
          away: {
            id: '4', name: 'Chicago White Sox', abbreviation: 'CHW', logo: 'https://a.espncdn.com/i/teamlogos/mlb/500/scoreboard/chw.png', score: 0, winner: null,
            record: '59-101',
          },
        },
      ],
    },
  }
}
