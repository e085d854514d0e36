import type { ApiEndpoint } from '../catalog/api-endpoint.ts'
import type { Api, Catalog } from '../catalog/catalog.ts'
import { toEntry } from '../catalog/catalog-entry.ts'
import { termsLink } from '../http/answer/call-answer.ts'
import { accountExamples, GRACE, json, MADE_AT, type MediaExamples, USED_AT } from './account-examples.ts'
import { LOGS } from './log-examples.ts'

/**
 * The examples of the document. They tell the story of one account: an object that one example
 * creates appears in later listings.
 */
export interface DocumentExamples {
  /** Request bodies by operation, for schemas from which no useful body can be generated. */
  requests: Record<string, unknown>
  /**
   * Answers by operation. The key includes the status if the answer is not a success or not the
   * only answer.
   */
  answers: Record<string, MediaExamples>
  /** A call with its answer: mapped, and as the upstream sent it. */
  call: { api?: string; endpoint?: string; parameters: unknown; mapped: unknown; raw: unknown }
}

const RATE_LIMIT = '"minute";r=9;t=60, "month";r=985;t=777600'

const callId = (number: number): string => `call_0b5b8d0c6f3a4a5e9f1d2c3b4a59687${number}`

/** The examples for a catalog, and for the public address of the gateway. */
export function documentExamples(catalog: Catalog, baseUrl: string): DocumentExamples {
  const first = catalog.get('weather') ?? [...catalog.values()][0]
  const endpoint = first && [...first.endpoints.values()][0]
  const own = { ...accountExamples(baseUrl), ...LOGS }
  if (!first || !endpoint) {
    return { requests: REQUESTS, answers: own, call: { parameters: undefined, mapped: undefined, raw: undefined } }
  }
  const { parameters, data, response } = endpoint.declaration.example
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
  updateKey: {
    ...{ label: 'My other laptop', apis: ['weather', 'currency'], addresses: ['203.0.113.0/24', '2001:db8::7'] },
    limits: { perMinute: 5, perMonth: 500 },
  },
  updateConnection: { limits: { perMonth: 500 } },
  setNotices: { byMail: false },
  deleteAccount: { password: 'correct horse battery staple' },
  mailResetLink: { email: 'ada@example.com' },
  login: { email: 'ada@example.com', password: 'correct horse battery staple' },
  transferTeam: { memberId: GRACE },
  putProviderKey: { key: '3f9a0c52d7e84b16a1b2c3d4e5f6c0de' },
}

/** Answers about an API that is fully healthy. */
function catalogExamples(api: Api, baseUrl: string): Record<string, MediaExamples> {
  const entry = toEntry(api, 100)
  const { summary, url = null, licence = null, attribution = null } = api.upstream.terms
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
    terms: { summary, url, licence, attribution },
    fallback: null,
    docs: `${baseUrl}/apis/${api.slug}`,
    // This member exists only in answers to requests with a credential.
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

function callOf({ slug }: Api, { path, declaration: endpoint }: ApiEndpoint): Call {
  const { parameters, data } = endpoint.example
  return { api: slug, endpoint: path, parameters, data }
}

/** Calls in other forms: batches and asynchronous calls. */
function callExamples(calls: Call[]): Pick<DocumentExamples, 'requests' | 'answers'> {
  const results = calls.map(({ api, data }, index) => ({ index, ref: api, id: callId(index), status: 200, data }))
  const totals = { done: true, ok: calls.length, failed: 0, charged: calls.length, deduplicated: 0, mode: 'live' }
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

/** A call by a tool of each MCP server. */
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
  // The data come from a recording, like the data of a call with a test key.
  const recorded = { mode: 'test', note: 'Recorded example. Use a live key for real data.' }
  return {
    requests: {
      mcp: call('call_api', { api, endpoint, parameters }),
      mcpOfApi: call(`${api}${endpoint}`.replace(/[^A-Za-z0-9]+/g, '_'), parameters),
    },
    answers: { mcp: answer({ api, endpoint, ...recorded, data }), mcpOfApi: answer({ ...recorded, ...Object(data) }) },
  }
}
