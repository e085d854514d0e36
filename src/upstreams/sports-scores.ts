import { dateIn, isCalendarDate } from '../catalog/calendar.ts'
import type { CallContext } from '../catalog/endpoint.ts'
import { type Fields, field, record, required, type Source } from '../catalog/fields.ts'
import { filledText, items, listedObjects, mapObjects, members, numeric, objects, text } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { InvalidParameter } from '../catalog/parameter-values.ts'
import { namesOf, optional, param, REQUESTS_MAX } from '../catalog/parameters.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import recordings from './recordings/sports-scores.json' with { type: 'json' }

const limit = param.integer('Maximum number of games', { minimum: 1, default: 10, aliases: namesOf.count })

const date = optional(
  param.text('Day in US Eastern time, YYYYMMDD; default: today', { minLength: 8, maxLength: 8, pattern: '^\\d{8}$' }),
)

const cache = { seconds: secondsFresh, staleWhileRevalidateSeconds: 30, staleIfErrorSeconds: lifetime.hour }

/** The time zone whose days the upstream uses. */
const easternDate = dateIn('America/New_York')

const HALF_DAY_MS = 43_200_000

/** The upstream's words for reasons why a game is not played. */
const NOT_PLAYED =
  /postponed|\bppd\b|cancel|abandon|forfeit|walk.?over|no.?contest|uncontested|if.?necessary|not.?necessary/i

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
    (event) => mapObjects(competitionOf(event).broadcasts, ({ names = [] }) => names),
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

/** What all leagues with games on every day have in common. */
const daily = { parameters: { dates: date, limit }, data: scores, cache, complete: completeDay }

export default upstream({
  displayName: 'Sports scores',
  category: 'sports',
  description: 'Games of the NFL, NBA and MLB with scores, status, teams and venue, from the ESPN scoreboards.',
  tags: ['sports', 'scores', 'nfl', 'nba', 'mlb'],
  keywords: words('football american soccer basketball baseball game match result league team fixture standings'),
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
  // A day without games has a small answer, which suits the probe.
  probe: {
    request: { path: path`/apis/site/v2/sports/basketball/nba/scoreboard`, query: { dates: '20250704' } },
    everySeconds: 300,
  },
  reservedParameters: words('callback'),
  mayLack: words('record logo week games broadcasts'),
  endpoints: {
    '/nfl': endpoint({
      description: 'NFL games of a day, a range of days or the current week.',
      parameters: {
        dates: optional(
          param.text(
            `Day YYYYMMDD or range YYYYMMDD-YYYYMMDD in US Eastern time, touching at most ${REQUESTS_MAX} calendar months; default: the current week`,
            { minLength: 8, maxLength: 17, pattern: '^\\d{8}(-\\d{8})?$' },
          ),
        ),
        limit,
      },
      data: weeklyScores,
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
      readFrom: ({ bodies, parameters: { dates, limit } }) => {
        const events = readEvents(bodies)
        const wanted = events && dates?.includes('-') ? withinRange(events, dates) : events
        return { league: 'NFL', games: wanted?.slice(0, limit) }
      },
      example: recordings['/nfl'],
    }),
    '/nba': endpoint({
      description: 'NBA games of a day.',
      ...daily,
      request: ({ dates }) => ({ path: path`/apis/site/v2/sports/basketball/nba/scoreboard`, query: { dates } }),
      readFrom: ({ bodies, parameters: { limit } }) => ({ league: 'NBA', games: readEvents(bodies)?.slice(0, limit) }),
      example: recordings['/nba'],
    }),
    '/mlb': endpoint({
      description: 'MLB games of a day.',
      ...daily,
      request: ({ dates }) => ({ path: path`/apis/site/v2/sports/baseball/mlb/scoreboard`, query: { dates } }),
      readFrom: ({ bodies, parameters: { limit } }) => ({ league: 'MLB', games: readEvents(bodies)?.slice(0, limit) }),
      example: recordings['/mlb'],
    }),
  },
})

/**
 * Always sends a day, because without a day the upstream may leave out today's games that have not
 * begun.
 */
function completeDay<Parameters extends { dates?: string }>(parameters: Parameters, { now }: CallContext): Parameters {
  const dates = parameters.dates ?? easternDay(now)
  checkDay(dates)
  return { ...parameters, dates }
}

function checkDay(day: string): void {
  // No league is older. The upstream may fail on a day that it cannot have.
  if (day < '18760101' || day > '21001231') throw new InvalidParameter('dates', `${day} is not in 1876 to 2100`)
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

/** Months since the year 0, for a day YYYYMMDD. */
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

/**
 * The lifetime depends on the games: some are running, all are to come or over for today, or all
 * are over for good.
 */
function secondsFresh(
  { dates, limit }: { dates?: string; limit: number },
  data: Record<string, unknown>,
  { now }: CallContext,
): number {
  const states = items(data.games).map((game) => members(members(members(game).status)).state)
  if (states.some((state) => state !== 'pre' && state !== 'post')) return 30
  // Without a day, the upstream moves on to the next week by itself.
  if (dates === undefined || states.length === 0 || states.includes('pre')) return 300
  // Games that `limit` cut off may be on until the night is over, and the upstream reorders its
  // list.
  const isWhole = states.length < limit || dates.slice(-8) < easternDay(now - HALF_DAY_MS)
  return isWhole ? lifetime.day : 300
}

/**
 * The events of all answers. Undefined if one of the answers has no list that can be read, or if no
 * event has its competitions: the games would have no teams.
 */
function readEvents(bodies: unknown[]): Source[] | undefined {
  const lists = bodies.map((body) => listedObjects(members(body).events))
  if (!lists.every((list) => list !== undefined)) return undefined
  const events = lists.flat()
  const isReadable = events.length === 0 || events.some(({ competitions }) => objects(competitions).length > 0)
  return isReadable ? events : undefined
}

/**
 * The events of the days of a range, each once though two months may both have it, in order of
 * time. Undefined if none of them says when it is.
 */
function withinRange(events: Source[], range: string): Source[] | undefined {
  const [first = '', last = ''] = range.split('-')
  const timed = [...new Map(events.map((event) => [event.id ?? event, event])).values()]
    .map((event) => ({ event, time: Date.parse(text(event.date) ?? '') }))
    .filter(({ time }) => !Number.isNaN(time))
  if (timed.length === 0 && events.length > 0) return undefined
  return timed
    .filter(({ time }) => easternDay(time) >= first && easternDay(time) <= last)
    .sort((one, other) => one.time - other.time)
    .map(({ event }) => event)
}

function competitionOf(event: Source): Source {
  return members(items(event.competitions)[0])
}

/**
 * The competitors come in any order. The upstream gives a game without play a score of 0, and both
 * sides of a game that is not over `winner: false`.
 */
function competitorOf(event: Source, side: 'home' | 'away'): Source | undefined {
  const competitors = objects(competitionOf(event).competitors)
  const competitor = competitors.find(({ homeAway }) => homeAway === side)
  if (!competitor) return undefined
  const { score, winner } = competitor
  const isPlayed = hasBegun(event)
  const { state, completed } = members(members(event.status).type)
  // A forfeit has a winner without play.
  const isDecided = competitors.some((either) => either.winner === true)
  const isOver = isPlayed && state === 'post' && completed !== false
  return { ...competitor, score: isPlayed ? score : null, winner: isDecided || isOver ? winner : null }
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
