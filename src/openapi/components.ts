import type { JsonSchema } from './schemas.ts'

/** Version of the HTTP interface. */
export const INTERFACE_VERSION = '0.3.0'

export const info = (baseUrl: string): JsonSchema => ({
  title: 'Agent API Gateway',
  version: INTERFACE_VERSION,
  summary: 'One HTTP layer over many public data APIs, for people and for agents.',
  description: [
    'One key reaches every API of the catalog: weather, currencies, encyclopedia, news and more.',
    '',
    '1. `POST /v1/auth/signup` gives a session token.',
    '2. `POST /v1/keys` with `{"environment":"test"}` gives a test key. The gateway answers calls with a test key from recorded examples; a live key reaches the real APIs.',
    '3. `GET /v1/call/{apiSlug}/{endpoint}` with the key in `X-Api-Key`.',
    '',
    'Every failure has a `code`, a `hint` that names the next action, and a link to its documentation.',
    `Single-file clients, generated from this catalog: [TypeScript](${baseUrl}/client.ts), [Python](${baseUrl}/client.py), [Postman or Bruno collection](${baseUrl}/postman.json).`,
    '',
    '## Options of a call',
    '',
    'Every call accepts these headers; the operation `callApi` describes them.',
    '',
    '- `Prefer: respond-async` answers 202 at once, and `Prefer: wait=5` after five seconds if the call has not ended; the result is at the address in `Location` (RFC 7240).',
    '- `Accept: application/vnd.upstream+json`, or `X-Gateway-Response: raw`, returns the unchanged JSON of the upstream.',
    '- `Accept: application/problem+json` returns failures as problem details (RFC 9457).',
    '- `X-Gateway-Scenario: upstream-500`, `timeout`, `rate-limited`, `invalid` or `slow-<ms>` makes a test call fail on purpose, so that you can try your error handling.',
    '- `X-Gateway-Mode: test` makes a test call with any credential: a live key, a session token or an access token.',
  ].join('\n'),
  license: { name: 'The data is subject to the terms of each API', url: `${baseUrl}/` },
})

/** The two kinds of credentials. */
export const securitySchemes: JsonSchema = {
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Api-Key',
    description: 'A service API key, `agw_live_…` or `agw_test_…`',
  },
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description:
      'The session token from sign-up or log-in. Calls and MCP also accept an API key, or the access token of an application, here',
  },
}

/** Descriptions of the service's own groups of routes. */
export const tagDescriptions: Record<string, string> = {
  Accounts: 'Sign-up, log-in and your account.',
  Keys: 'API keys: create, list, change, rotate, revoke. The gateway shows a full key once.',
  Teams: 'Teams, their members and roles.',
  Billing: 'Plan, limits and usage of the month.',
  Usage: 'Number of calls by day, API, key or status.',
  'Provider keys': 'Your own keys for APIs that accept them, stored encrypted.',
  Catalog: 'Every API with its endpoints, parameters, tier and health.',
  Calls:
    'The route that calls any endpoint of any API, batches and asynchronous calls; each endpoint also has an operation of its own.',
  Documentation: 'This document, and the documentation as text.',
  Connections: 'Applications that signed in to your account.',
  MCP: 'The Model Context Protocol, for agents.',
  Service: 'Whether the service is up.',
}

const text = (description: string, example?: string): JsonSchema => ({
  description,
  schema: { type: 'string' },
  ...(example === undefined ? {} : { example }),
})

export const headers: Record<string, JsonSchema> = {
  RequestId: text('Id of the request in the logs of the gateway', 'req_0b5b8d0c6f3a4a5e9f1d2c3b4a596877'),
  CallId: text('Id of the call', 'call_0b5b8d0c6f3a4a5e9f1d2c3b4a596877'),
  RateLimit: text(
    'What is left of each limit: `r` calls, and `t` seconds until the limit resets',
    '"minute";r=9;t=60, "month";r=999;t=86400',
  ),
  RateLimitPolicy: text(
    'Limits of the plan, and limits that the owner has set for the key or application',
    '"minute";q=10;w=60, "month";q=1000, "in-flight";q=5;qu="concurrent-requests"',
  ),
  LimitPerMinute: {
    description: 'Calls a minute that the plan allows, or the key or application if it has fewer calls left',
    schema: { type: 'integer' },
  },
  RemainingThisMinute: { description: 'Calls left of this limit now', schema: { type: 'integer' } },
  MinuteReset: { description: 'When the limit per minute resets, seconds since 1970', schema: { type: 'integer' } },
  Age: { description: 'Age of a stored answer, seconds', schema: { type: 'integer', minimum: 0 } },
  PreferenceApplied: text('The preference of `Prefer` that was applied (RFC 7240)', 'respond-async'),
  TermsLink: text(
    'Terms and licence of the data (RFC 8288)',
    '<https://open-meteo.com/en/terms>; rel="terms-of-service"',
  ),
  GatewayMode: text('`test` if the answer is an example', 'test'),
  GatewayRecordedFor: text(
    'Parameters for which the example was recorded, as a query string; absent if the data matches the parameters of the call, or is not recorded',
    'latitude=40.71&longitude=-74.01',
  ),
  GatewayExample: text(
    'Source of the answer to a test call if no answer was recorded: `document`, an example of the whole answer in the document of the API; `made`, a value made from the schema of the answer and the examples in it. Neither depends on the parameters',
    'document',
  ),
  CacheStatus: text('Whether the gateway used a stored answer (RFC 9211)', 'agw; hit; ttl=240'),
  ServerTiming: text('Time spent in each step, milliseconds', 'queue;dur=1.2, upstream;dur=84.0'),
  Challenge: text('The credential that the route needs (RFC 6750)', 'Bearer realm="agent-api-gateway"'),
  RetryAfter: { description: 'Seconds until you may send the request again', schema: { type: 'integer', minimum: 1 } },
}

export const parameters: Record<string, JsonSchema> = {
  Prefer: {
    name: 'Prefer',
    in: 'header',
    description:
      '`respond-async` answers 202 at once; `wait=5` waits up to five seconds for the answer first (RFC 7240)',
    schema: { type: 'string' },
  },
  GatewayResponse: {
    name: 'X-Gateway-Response',
    in: 'header',
    description: '`raw`: the unchanged JSON of the upstream, without the envelope',
    // A pattern instead of an enum, because tools fill in the only value of an enum.
    schema: { type: 'string', pattern: '^raw$' },
  },
  GatewayScenario: {
    name: 'X-Gateway-Scenario',
    in: 'header',
    description:
      'Makes a call with a test key fail on purpose: upstream-500, timeout, rate-limited, invalid, slow-<ms>',
    schema: { type: 'string', pattern: '^(upstream-500|timeout|rate-limited|invalid|slow-[0-9]{1,5})$' },
  },
}

export const responses: Record<string, JsonSchema> = {
  CallAccepted: {
    description: 'The call has not ended; its result will be at the address in Location',
    headers: {
      Location: { description: 'Address of the result', schema: { type: 'string' } },
      'Retry-After': {
        description: 'Seconds after which to look for the result',
        schema: { type: 'integer', minimum: 1 },
      },
      'X-Call-Id': { $ref: '#/components/headers/CallId' },
      'X-Request-Id': { $ref: '#/components/headers/RequestId' },
    },
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/PendingCall' },
        example: {
          status: 'pending',
          id: 'call_0b5b8d0c6f3a4a5e9f1d2c3b4a596877',
          location: '/v1/calls/call_0b5b8d0c6f3a4a5e9f1d2c3b4a596877',
          position: 3,
          etaMs: 4_200,
        },
      },
    },
  },
}

/** A call that runs in the background. */
export const pendingCall: JsonSchema = {
  type: 'object',
  required: ['status', 'id'],
  properties: {
    status: { type: 'string', const: 'pending', description: 'Always pending: the call has not ended' },
    id: { type: 'string', description: 'The call' },
    location: { type: 'string', description: 'Address of the result' },
    position: { type: 'integer', description: 'Calls that the gateway sends to the upstream before this call' },
    etaMs: {
      type: 'integer',
      description:
        'Expected time until the gateway sends the call, milliseconds; 0: the call does not wait, and its request may be under way; absent if nobody knows, for example while an operator holds the calls of the API or no worker serves it',
    },
  },
}
