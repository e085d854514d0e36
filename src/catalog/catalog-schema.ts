import Type, { type Static } from 'typebox'
import { nullable } from './json.ts'

const CatalogEndpoint = Type.Object({
  path: Type.String({ description: 'Path of the endpoint, such as /current' }),
  method: Type.String({ description: 'HTTP method' }),
  description: nullable(Type.String({ description: 'What the endpoint returns' })),
  params: Type.Record(
    Type.String(),
    Type.Object({
      type: Type.String({ description: 'JSON type of the value' }),
      required: Type.Boolean({ description: 'Whether a call must have the parameter' }),
      description: Type.String({ description: 'Meaning and bounds' }),
      aliases: Type.Optional(
        Type.Array(Type.String(), { description: 'Other names that a call may use for the parameter' }),
      ),
      default: Type.Optional(Type.Unknown({ description: 'Value if a call does not have the parameter' })),
    }),
    { description: 'Parameters by name' },
  ),
  effect: Type.Optional(
    Type.Enum(['repeatable', 'once'], {
      description:
        'How a call changes something at the source. Absent: a call changes nothing. repeatable: sending the same call again does no harm. once: the gateway never sends a call twice',
    }),
  ),
  example: Type.Optional(
    Type.Enum(['document', 'made'], {
      description:
        'Source of the answers to test calls. document: an example of the whole answer in the OpenAPI document of the API. made: a value made from the schema of the answer and the examples in it. Absent: a recorded answer',
    }),
  ),
})

/** An API as the catalog lists it. */
export const ApiEntry = Type.Object(
  {
    api_name: Type.String({ description: 'Slug, as in the path of a call' }),
    display_name: Type.String({ description: 'Name for people' }),
    category: nullable(Type.String({ description: 'Group of the catalog' })),
    description: nullable(Type.String({ description: 'What the API returns' })),
    tags: Type.Array(Type.String(), { description: 'Subjects' }),
    free: Type.Boolean({ description: 'Whether the free plan may call the API' }),
    tier_required: Type.Enum(['developer', 'pro', 'business', 'enterprise'], {
      description: 'Lowest tier that may call the API',
    }),
    enabled: Type.Boolean({ description: 'Whether the API is enabled for live calls; test calls do not depend on it' }),
    waiting_for: nullable(Type.String({ description: 'What is missing if the API is not enabled; null: nothing' })),
    health_score: Type.Integer({ minimum: 0, maximum: 100, description: '0 if the API is not enabled or is paused' }),
    example_query: nullable(Type.String({ description: 'Path and query of an example call' })),
    endpoints: Type.Array(CatalogEndpoint, { description: 'Endpoints of the API' }),
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
  at: Type.String({ format: 'date-time', description: 'Time of the change' }),
  from: status('State before'),
  to: status('State after'),
  cause: Type.String({
    description:
      'score, failures-in-a-row, trials-passed, members-back, other-address, or `lacks` with the members that answers lack',
  }),
  code: nullable(Type.String({ description: 'Error code of the attempt that caused the change' })),
  score: Type.Integer({ description: 'Score after the change, 0 to 100' }),
})

const Health = Type.Object(
  {
    status: status(
      'State of the API: Healthy if it was not checked yet, Down if live calls are refused or most of them fail',
    ),
    score: Type.Integer({ minimum: 0, maximum: 100, description: 'Score, 0 to 100' }),
    meanwhile: nullable(
      Type.String({
        description:
          'What callers get while the API is not healthy, is paused, is not enabled or is limited by its source; null: calls are answered as usual',
      }),
    ),
    since: nullable(
      Type.String({ format: 'date-time', description: 'Start of this state; null: the state has never changed' }),
    ),
    checkedAt: nullable(
      Type.String({
        format: 'date-time',
        description: 'Time of the last call or probe that showed whether the source works; null: there was none',
      }),
    ),
    parts: Type.Object(
      {
        availability: Type.Number({ description: 'Up to 80: 80·max(0, 1−2f) with f = fail/(ok+fail+5)' }),
        latency: Type.Number({ description: 'Up to 20: 20·clamp((10 s − p95)/9 s, 0, 1)' }),
        ok: Type.Number({ description: 'Successful attempts; the weight of an attempt halves every two minutes' }),
        fail: Type.Number({ description: 'Failed attempts, weighted like ok' }),
        failShare: Type.Number({ description: 'Share of attempts that failed, 0 to 1' }),
        p95Ms: nullable(
          Type.Number({
            description: '95th percentile of the duration of an attempt, milliseconds; null: no attempts',
          }),
        ),
      },
      { description: 'The parts of the score' },
    ),
    lastChange: Type.Union([Change, Type.Null()], { description: 'Latest change of the state' }),
    history: Type.Array(Change, { description: 'Changes of the last 24 hours, newest first' }),
  },
  { description: 'Health of the source of the API' },
)

/** The upstream's cap as it is now; null if it is not known, for want of Redis. */
const CapAnswer = Type.Object(
  {
    concurrency: Type.Integer({ description: 'Requests that may be under way at once' }),
    underWay: nullable(Type.Integer({ description: 'Requests under way now' })),
    waiting: nullable(Type.Integer({ description: 'Calls that wait in the queue' })),
    nextSlotMs: nullable(
      Type.Integer({
        description:
          'How long a call that arrives now would wait in the queue, milliseconds; null: not known, or calls wait until an operator resumes the API',
      }),
    ),
    limitedForMs: nullable(
      Type.Integer({
        description:
          'How long the source refuses requests of the gateway, as the source itself stated, milliseconds; 0: it does not refuse them',
      }),
    ),
    rates: Type.Array(
      Type.Object({
        max: Type.Integer({ description: 'Requests allowed in any window' }),
        seconds: Type.Number({ description: 'Length of the window' }),
        left: nullable(Type.Integer({ description: 'Requests left in the current window' })),
      }),
      { description: 'Limits in rolling windows' },
    ),
  },
  { description: 'How many requests the source of the API allows the gateway' },
)

/** What a credential has left. */
export const Allowance = Type.Object({
  minuteLeft: Type.Integer({ description: 'Calls left in this minute' }),
  monthLeft: nullable(Type.Integer({ description: 'Calls left in this month; null for test calls' })),
  inFlightLeft: Type.Integer({ description: 'How many more calls may be under way at once' }),
})
export type Allowance = Static<typeof Allowance>

/** What a call with a credential would meet now. */
export const Quote = Type.Object(
  {
    waitMs: nullable(
      Type.Integer({
        description: 'Time until the gateway could send a call to the source, milliseconds; null: not known, or never',
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
          { description: 'What makes a call wait, or why it is refused' },
        ),
        Type.Null(),
      ],
      { description: 'null: a call is sent at once' },
    ),
    ...Allowance.properties,
    stored: Type.Array(Type.String(), {
      description:
        'Endpoints whose answer to a call without parameters is stored, so that the call needs no request to the source',
    }),
    health: status('State of the source'),
  },
  {
    description: 'What would happen to a call with this credential now. Reading it counts against no limit of the plan',
  },
)
export type Quote = Static<typeof Quote>

const TermsAnswer = Type.Object(
  {
    summary: Type.String({ description: 'The terms in a sentence' }),
    url: nullable(Type.String({ description: 'Address of the full terms' })),
    licence: nullable(
      Type.String({ description: 'Address of the licence of the data; null: the source names no licence' }),
    ),
    attribution: nullable(Type.String({ description: 'Credit that the source requires' })),
  },
  { description: 'Terms of the source' },
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
        name: Type.String({ description: 'Host name of the website of the second source' }),
        answering: Type.Boolean({
          description:
            'Whether the second source answers calls now, because the source of the API is down or limits the gateway',
        }),
        terms: TermsAnswer,
      },
      {
        description:
          'A second source, which answers if the source of the API fails; null: the API has no second source',
      },
    ),
  ),
  docs: Type.String({ description: 'Address of the documentation of the API' }),
  now: Type.Optional(Quote),
})
export type ApiDetail = Static<typeof ApiDetail>
