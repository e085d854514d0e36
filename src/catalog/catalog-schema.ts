import Type, { type Static } from 'typebox'
import { nullable } from './json.ts'

const CatalogEndpoint = Type.Object({
  path: Type.String({ description: 'Path of the endpoint, such as /current' }),
  method: Type.String({ description: 'HTTP method' }),
  description: nullable(Type.String({ description: 'What it answers' })),
  params: Type.Record(
    Type.String(),
    Type.Object({
      type: Type.String({ description: 'JSON type of the value' }),
      required: Type.Boolean({ description: 'Whether a call must give it' }),
      description: Type.String({ description: 'Meaning and bounds' }),
      aliases: Type.Optional(Type.Array(Type.String(), { description: 'Other names that a call may use for it' })),
      default: Type.Optional(Type.Unknown({ description: 'Value if a call gives none' })),
    }),
    { description: 'Parameters by name' },
  ),
  effect: Type.Optional(
    Type.Enum(['repeatable', 'once'], {
      description:
        'What a call changes at the source; absent: nothing. repeatable: the same call again does no harm. once: it is never sent twice',
    }),
  ),
  example: Type.Optional(
    Type.Enum(['document', 'made'], {
      description:
        'What answers test calls: document, an example of the document of the API; made, a value made from its schema. Absent: a recorded answer',
    }),
  ),
})

/** An API as the catalog lists it. */
export const ApiEntry = Type.Object(
  {
    api_name: Type.String({ description: 'Slug, as in the path of a call' }),
    display_name: Type.String({ description: 'Name for people' }),
    category: nullable(Type.String({ description: 'Group of the catalog' })),
    description: nullable(Type.String({ description: 'What the API answers' })),
    tags: Type.Array(Type.String(), { description: 'Subjects' }),
    free: Type.Boolean({ description: 'Whether its lowest tier is the free plan' }),
    tier_required: Type.Enum(['developer', 'pro', 'business', 'enterprise'], {
      description: 'Lowest tier that may call it',
    }),
    enabled: Type.Boolean({ description: 'Whether live calls are taken; test keys are answered either way' }),
    waiting_for: nullable(Type.String({ description: 'What an API that is not enabled waits for' })),
    health_score: Type.Integer({ minimum: 0, maximum: 100, description: '0 while it is not enabled, or paused' }),
    example_query: nullable(Type.String({ description: 'Path and query of an example call' })),
    endpoints: Type.Array(CatalogEndpoint, { description: 'Its endpoints' }),
  },
  { title: 'ApiEntry' },
)
export type ApiEntry = Static<typeof ApiEntry>

/** The whole catalog, or what a search found. */
export const CatalogAnswer = Type.Object({
  data: Type.Array(ApiEntry, { description: 'The APIs' }),
  total: Type.Integer({ description: 'Number of APIs in data' }),
})

/** One of the three states of health. */
const status = (description: string) => Type.Enum(['Healthy', 'Degraded', 'Down'], { description })

const Change = Type.Object({
  at: Type.String({ format: 'date-time', description: 'When it changed' }),
  from: status('State before'),
  to: status('State after'),
  cause: Type.String({
    description: 'score, failures-in-a-row, trials-passed, members-back, or `lacks` with the members that answers lack',
  }),
  code: nullable(Type.String({ description: 'Code of the attempt that decided it' })),
  score: Type.Integer({ description: 'Score after the change, 0 to 100' }),
})

const Health = Type.Object(
  {
    status: status('State; the nearest state if it was not checked yet'),
    score: Type.Integer({ minimum: 0, maximum: 100, description: 'Score, 0 to 100' }),
    meanwhile: nullable(
      Type.String({
        description:
          'What callers get while the API is not healthy, is paused, is not enabled or is limited by its source; null: nothing to say',
      }),
    ),
    since: nullable(Type.String({ format: 'date-time', description: 'Begin of this state; null if it never changed' })),
    checkedAt: nullable(
      Type.String({
        format: 'date-time',
        description: 'Last call or probe; null: not checked yet, so nothing is known',
      }),
    ),
    parts: Type.Object(
      {
        availability: Type.Number({ description: 'Up to 80: 80·max(0, 1−2f) with f = fail/(ok+fail+5)' }),
        latency: Type.Number({ description: 'Up to 20: 20·clamp((10 s − p95)/9 s, 0, 1)' }),
        ok: Type.Number({ description: 'Good attempts, each counting half after two minutes' }),
        fail: Type.Number({ description: 'Failed attempts, likewise' }),
        failShare: Type.Number({ description: 'Share of attempts that failed, 0 to 1' }),
        p95Ms: nullable(
          Type.Number({
            description: '95th percentile of the time of an attempt, milliseconds; null without attempts',
          }),
        ),
      },
      { description: 'What the score is made of' },
    ),
    lastChange: Type.Union([Change, Type.Null()], { description: 'Latest change of the state' }),
    history: Type.Array(Change, { description: 'Changes of the last 24 hours, newest first' }),
  },
  { description: 'How well it answers' },
)

/** The upstream's cap as it is now; null if it is not known, for want of Redis. */
const CapAnswer = Type.Object(
  {
    concurrency: Type.Integer({ description: 'Requests that may be under way at once' }),
    underWay: nullable(Type.Integer({ description: 'Requests under way now' })),
    waiting: nullable(Type.Integer({ description: 'Calls that wait for their turn' })),
    nextSlotMs: nullable(
      Type.Integer({ description: 'When a call that comes now would have its turn, milliseconds from now' }),
    ),
    limitedForMs: nullable(
      Type.Integer({
        description: 'How long its source takes no request of the gateway, by its own words; 0: it takes them',
      }),
    ),
    rates: Type.Array(
      Type.Object({
        max: Type.Integer({ description: 'Requests allowed in any window' }),
        seconds: Type.Number({ description: 'Length of the window' }),
        left: nullable(Type.Integer({ description: 'Of them, left now' })),
      }),
      { description: 'Limits in rolling windows' },
    ),
  },
  { description: 'What its source allows the gateway' },
)

/** What a credential has left. */
export const Allowance = Type.Object({
  minuteLeft: Type.Integer({ description: 'Calls left in this minute' }),
  monthLeft: nullable(Type.Integer({ description: 'Calls left in this month; null for test calls' })),
  inFlightLeft: Type.Integer({ description: 'Further calls that may be under way' }),
})
export type Allowance = Static<typeof Allowance>

/** What a call with a credential would meet now. */
export const Quote = Type.Object(
  {
    waitMs: nullable(
      Type.Integer({
        description: 'Until a call could be sent to the source, milliseconds; null: not known, or never',
      }),
    ),
    limitedBy: Type.Union(
      [
        Type.Enum(
          [
            'credential',
            'plan',
            'account',
            'operator',
            'provider-key',
            'in-flight',
            'minute',
            'month',
            'health',
            'source',
          ],
          { description: 'What a call waits for, or is refused for' },
        ),
        Type.Null(),
      ],
      { description: 'null: nothing' },
    ),
    ...Allowance.properties,
    stored: Type.Array(Type.String(), {
      description: 'Endpoints whose answer to a call without parameters is stored: it needs no request to the source',
    }),
    health: status('Of the source'),
  },
  { description: 'What a call with this credential would meet now; takes nothing' },
)
export type Quote = Static<typeof Quote>

const TermsAnswer = Type.Object(
  {
    summary: Type.String({ description: 'The terms in a sentence' }),
    url: nullable(Type.String({ description: 'The terms in full' })),
    licence: nullable(Type.String({ description: 'Address of the licence of the data; null: none is named' })),
    attribution: nullable(Type.String({ description: 'Credit that the source asks for' })),
  },
  { description: 'Terms of its source' },
)

/** One API, with its health, limits and terms. */
export const ApiDetail = Type.Object({
  ...ApiEntry.properties,
  health: Health,
  limits: CapAnswer,
  terms: TermsAnswer,
  fallback: nullable(
    Type.Object(
      {
        name: Type.String({ description: 'Host of its website' }),
        answering: Type.Boolean({
          description: 'Whether it answers calls now, because the source of the API is down or limits the gateway',
        }),
        terms: TermsAnswer,
      },
      { description: 'A second source, which answers when the source of the API fails; null: there is none' },
    ),
  ),
  docs: Type.String({ description: 'Page of the API' }),
  now: Type.Optional(Quote),
})
export type ApiDetail = Static<typeof ApiDetail>
