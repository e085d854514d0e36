import type { Api, ApiEndpoint, Catalog } from '../catalog/catalog.ts'
import { toEntry } from '../catalog/catalog-entry.ts'
import { termsLink } from '../http/answer/call-answer.ts'
import { LOGS } from './log-examples.ts'

/** Examples of bodies by media type. */
export type MediaExamples = Record<string, unknown>

/**
 * The examples of the document, told of one account: what is made in an example is listed in the
 * next example.
 */
export interface DocumentExamples {
  /** Bodies of requests by operation, if a schema says too little to make a body. */
  requests: Record<string, unknown>
  /**
   * Answers by operation; by operation and status if the answer is no success, or not the only
   * answer.
   */
  answers: Record<string, MediaExamples>
  /** A call and its answer: mapped, and as the upstream sent it. */
  call: { api?: string; endpoint?: string; parameters: unknown; mapped: unknown; raw: unknown }
}

const ADA = '9f1c3c52-7f3e-4f8e-9d43-0d3f0f7f9a11'
const GRACE = '3b7a1e0d-2c4f-4a61-8e95-6f0d1b2c3a44'
const TEAM = 'c1d90b5e-88f3-4c27-a0b6-57e2f4a9d310'
const MADE_AT = '2026-11-02T09:30:00.000Z'
const USED_AT = '2026-11-21T11:58:00.000Z'
const RATE_LIMIT = '"minute";r=9;t=60, "month";r=985;t=777600'
const TOKEN = 'eyJhbGciOiJIUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiI5ZjFjM2M1MiJ9.c2lnbmF0dXJl'

const callId = (number: number): string => `call_0b5b8d0c6f3a4a5e9f1d2c3b4a59687${number}`

const json = (body: unknown): MediaExamples => ({ 'application/json': body })

/** The examples for a catalog and the public address of its gateway. */
export function documentExamples(catalog: Catalog, baseUrl: string): DocumentExamples {
  const first = catalog.get('weather') ?? [...catalog.values()][0]
  const endpoint = first && [...first.endpoints.values()][0]
  const own = {
    ...ACCOUNT,
    ...EXPORT,
    ...KEYS,
    ...LOGS,
    ...TEAMS,
    ...PROVIDER_KEYS,
    ...usage(),
    ...connections(baseUrl),
  }
  if (!first || !endpoint) {
    return { requests: REQUESTS, answers: own, call: { parameters: undefined, mapped: undefined, raw: undefined } }
  }
  const { parameters, data, response } = endpoint.endpoint.example
  const currency = catalog.get('currency')
  const pair = currency?.endpoints.get('/pair')
  const call = callOf(first, endpoint)
  const calls = callExamples([call, ...(currency && pair ? [callOf(currency, pair)] : [])])
  const tools = toolExamples(call, termsLink(first.upstream.terms))
  return {
    requests: { ...REQUESTS, ...calls.requests, ...tools.requests },
    answers: { ...own, ...catalogExamples(first, baseUrl), ...calls.answers, ...tools.answers },
    call: {
      api: first.slug,
      endpoint: endpoint.path,
      parameters,
      mapped: { status: 'success', data },
      raw: response,
    },
  }
}

const REQUESTS = {
  updateKey: { label: 'My other laptop', apis: ['weather', 'currency'], limits: { perMinute: 5, perMonth: 500 } },
  updateConnection: { limits: { perMonth: 500 } },
  setNotices: { byMail: false },
  deleteAccount: { password: 'correct horse battery staple' },
  mailResetLink: { email: 'ada@example.com' },
  login: { email: 'ada@example.com', password: 'correct horse battery staple' },
  transferTeam: { memberId: GRACE },
  putProviderKey: { key: '3f9a0c52d7e84b16a1b2c3d4e5f6c0de' },
}

const ACCOUNT: Record<string, MediaExamples> = {
  getReadyz: json({ status: 'ready', postgres: true, redis: true, problems: [] }),
  'getReadyz 503': json({ status: 'unavailable', postgres: true, redis: false, problems: [] }),
  signup: json({ token: TOKEN, user: { id: ADA, email: 'ada@example.com' } }),
  getMe: json({ id: ADA, email: 'ada@example.com', tier: 'developer', termsAcceptedAt: null }),
  readNotices: json({ byMail: true }),
  setNotices: json({ byMail: false }),
  readVerification: json({ emailVerified: false, liveCallsNeed: null }),
  getBillingStatus: json({
    tier: 'developer',
    plan: 'Free',
    limits: { perMinute: 10, perMonth: 1_000, inFlight: 5 },
    usage: { month: '2026-11', used: 15, remaining: 985, resetsAt: '2026-12-01T00:00:00.000Z' },
  }),
}

const KEY = {
  id: '5e2f7c90-1a3b-4d8e-b6c7-90a1f2e3d4c5',
  keyPrefix: 'agw_live_',
  environment: 'live',
  label: 'My laptop',
  createdAt: MADE_AT,
  lastFour: 'x7Qp',
  lastUsedAt: USED_AT,
  expiresAt: null,
  teamId: null,
  mayWrite: false,
  apis: ['weather', 'currency'],
  limits: { perMinute: 5, perMonth: 500, inFlight: null },
  replacedBy: null,
  createdBy: ADA,
}

const KEYS: Record<string, MediaExamples> = {
  createKey: json({
    key: 'agw_live_0123456789abcdefghijABCDEFGHIJ0123456789abc0Gx7Qp',
    id: KEY.id,
    keyPrefix: KEY.keyPrefix,
  }),
  listKeys: json({ keys: [KEY] }),
  updateKey: json({ ...KEY, label: 'My other laptop' }),
  rotateKey: json({
    key: 'agw_live_0123456789abcdefghijABCDEFGHIJ0123456789abc0Gx7Qp',
    id: '0d9c8b7a-6f5e-4d3c-8b2a-1f0e9d8c7b6a',
    keyPrefix: KEY.keyPrefix,
    previous: { id: KEY.id, expiresAt: '2026-11-22T11:58:00.000Z' },
  }),
}

const EXPORT: Record<string, MediaExamples> = {
  exportAccount: json({
    exportedAt: USED_AT,
    profile: { id: ADA, email: 'ada@example.com', tier: 'developer', createdAt: MADE_AT },
    sessions: [{ createdAt: MADE_AT, expiresAt: '2026-11-03T09:30:00.000Z', revokedAt: null }],
    keys: [{ ...KEY, revokedAt: null }],
    connections: [],
    teams: [],
    providerKeys: [],
    usage: [{ day: '2026-11-21', key: KEY.id, api: 'weather', status: 200, mode: 'live', calls: 15 }],
    refusals: [],
    calls: [],
  }),
}

const team = { id: TEAM, name: 'Weather team', ownerId: ADA, createdAt: MADE_AT, updatedAt: MADE_AT }
const ada = {
  ...{ id: ADA, userId: ADA, email: 'ada@example.com', role: 'owner', joinedAt: MADE_AT, emailVerified: false },
}
const grace = { ...ada, id: GRACE, userId: GRACE, email: 'grace@example.com', role: 'member', joinedAt: USED_AT }
const teamKey = {
  ...KEY,
  id: 'd7b1c4a2-6e5f-4f90-8a3b-2c1d0e9f8a76',
  label: 'Dashboard',
  lastFour: 'K2wz',
  teamId: TEAM,
}

const TEAMS: Record<string, MediaExamples> = {
  listTeams: json({ teams: [team] }),
  createTeam: json({ team }),
  getTeam: json({ team, members: [ada, grace], keys: [teamKey], yourRole: 'owner' }),
  updateTeam: json({ team: { ...team, updatedAt: USED_AT } }),
  createTeamMember: json({ member: grace }),
  updateTeamMember: json({ member: { ...grace, role: 'admin' } }),
  transferTeam: json({ team: { ...team, ownerId: GRACE, updatedAt: USED_AT } }),
}

const saved = {
  apiSlug: 'news',
  displayName: 'News',
  accessMode: 'byok_available',
  status: 'unvalidated',
  maskedKey: '********c0de',
  savedAt: USED_AT,
  lastValidatedAt: null,
  validationFailure: null,
}
const validated = { ...saved, status: 'valid', lastValidatedAt: '2026-11-21T11:58:01.000Z' }

const PROVIDER_KEYS: Record<string, MediaExamples> = {
  putProviderKey: json(saved),
  listProviderKeys: json({ providerKeys: [validated] }),
  validateProviderKey: json(validated),
}

function usage(): Record<string, MediaExamples> {
  const row = { day: '2026-11-21', api: 'weather', key: KEY.id }
  const rows = [
    { calls: 15, ...row, status: 200 },
    { calls: 2, ...row, status: 429 },
  ]
  const span = { from: '2026-10-23', to: '2026-11-21', groupBy: ['day', 'api', 'key', 'status'] }
  return { getUsage: json({ ...span, total: 17, usage: rows }) }
}

function connections(baseUrl: string): Record<string, MediaExamples> {
  const connection = {
    id: 'a4c2e860-93d1-4b7f-8e05-1f6d7c8b9a02',
    clientId: 'https://agent.example.com/oauth/client.json',
    clientName: 'Example agent',
    redirectHost: 'agent.example.com',
    resource: `${baseUrl}/mcp`,
    apis: ['weather', 'currency'],
    limits: { perMinute: null, perMonth: 500, inFlight: null },
    mayWrite: false,
    perMonth: 500,
    createdAt: MADE_AT,
    lastUsedAt: USED_AT,
  }
  return { listConnections: json({ connections: [connection] }), updateConnection: json(connection) }
}

/** An API that is as healthy as can be. */
function catalogExamples(api: Api, baseUrl: string): Record<string, MediaExamples> {
  const entry = toEntry(api, 100)
  const { summary, url = null, attribution = null } = api.upstream.terms
  const change = { at: MADE_AT, from: 'Degraded', to: 'Healthy', cause: 'score', code: null, score: 83 }
  const detail = {
    ...entry,
    health: {
      status: 'Healthy',
      score: 100,
      meanwhile: null,
      since: MADE_AT,
      checkedAt: USED_AT,
      parts: { availability: 80, latency: 20, ok: 41.5, fail: 0, failShare: 0, p95Ms: 180 },
      lastChange: change,
      history: [],
    },
    limits: {
      concurrency: api.caps.concurrency,
      ...{ underWay: 0, waiting: 0, nextSlotMs: 0, limitedForMs: 0 },
      rates: api.caps.rates.map(({ max, seconds }) => ({ max, seconds, left: max })),
    },
    terms: { summary, url, attribution },
    fallback: null,
    docs: `${baseUrl}/apis/${api.slug}`,
    // As asked with a credential.
    now: {
      ...{ waitMs: 0, limitedBy: null, minuteLeft: 9, monthLeft: 993, inFlightLeft: 5 },
      ...{ stored: [], health: 'Healthy' },
    },
  }
  return { getCatalog: json({ data: [entry], total: 1 }), getCatalogBySlug: json(detail) }
}

interface Call {
  api: string
  endpoint: string
  parameters: unknown
  data: unknown
}

function callOf({ slug }: Api, { path, endpoint }: ApiEndpoint): Call {
  const { parameters, data } = endpoint.example
  return { api: slug, endpoint: path, parameters, data }
}

/** Calls in the other forms in which they are made: many at once, later. */
function callExamples(calls: Call[]): Pick<DocumentExamples, 'requests' | 'answers'> {
  const results = calls.map(({ api, data }, index) => ({ index, ref: api, id: callId(index), status: 200, data }))
  const totals = { done: true, ok: calls.length, failed: 0, charged: calls.length, deduplicated: 0 }
  const lines = [...results, totals].map((line) => `${JSON.stringify(line)}\n`)
  return {
    requests: {
      batch: { calls: calls.map(({ api, endpoint, parameters }) => ({ ref: api, api, endpoint, parameters })) },
    },
    answers: {
      batch: { 'application/x-ndjson': lines.join(''), ...json({ results, ...totals }) },
      getCall: json({ status: 'pending', id: callId(0), position: 3, etaMs: 4_200 }),
    },
  }
}

/** A call by a tool of each server. */
function toolExamples(
  { api, endpoint, parameters, data }: Call,
  link: string | undefined,
): Pick<DocumentExamples, 'requests' | 'answers'> {
  const message = { jsonrpc: '2.0', id: 1 }
  const call = (name: string, given: unknown) => {
    return { ...message, method: 'tools/call', params: { name, arguments: given } }
  }
  const answer = (content: unknown): MediaExamples => {
    const ofAnswer = { 'agent-api-gateway/x-call-id': callId(0), 'agent-api-gateway/ratelimit': RATE_LIMIT }
    const _meta = { ...ofAnswer, ...(link === undefined ? {} : { 'agent-api-gateway/link': link }) }
    const text = { type: 'text', text: JSON.stringify(content) }
    const body = { result: { _meta, content: [text], structuredContent: content }, ...message }
    return { ...json(body), 'text/event-stream': `event: message\ndata: ${JSON.stringify(body)}\n\n` }
  }
  // The data of the example are recorded, like the data of a test key.
  const recorded = { mode: 'test', note: 'Recorded example. Use a live key for real data.' }
  return {
    requests: {
      mcp: call('call_api', { api, endpoint, parameters }),
      mcpOfApi: call(`${api}${endpoint}`.replace(/[^A-Za-z0-9]+/g, '_'), parameters),
    },
    answers: { mcp: answer({ api, endpoint, ...recorded, data }), mcpOfApi: answer({ ...recorded, ...Object(data) }) },
  }
}
