/**
 * Prints what a model reads of the gateway's answers: the largest answer of each endpoint through each tool, ten tasks of
 * an agent with the characters that it reads whole and as the tools answer, and the size of the lists of tools.
 *
 *   node test/tools/agent-figures.ts
 *
 * Upstreams are played on this machine: recorded answers whose lists and texts are made as long as sources make them.
 */
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { isObject } from '../../src/catalog/json.ts'
import { send, signUp } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { startUpstreamServer } from '../support/upstream-server.ts'

/** Items of a long list, and characters of a long text. */
const ITEMS = 500
const CHARACTERS = 20_000
/** A shorter text is a name or a code, not prose. */
const PROSE_MIN = 80
/** Upstreams' answers are read up to 2 MiB. */
const BODY_MAX = 1_900_000

interface Call {
  api: string
  endpoint: string
  parameters?: Record<string, unknown>
  fields?: string[]
  limit?: number
}

/** Calls of an agent that knows what it wants, as the tools' descriptions teach it. */
const TASKS: Record<string, Call[]> = {
  'Who commented on the first posts?': [
    { api: 'mock-data', endpoint: '/comments', fields: ['comments[].email'], limit: 20 },
  ],
  'Euro to dollar': [{ api: 'currency', endpoint: '/latest', fields: ['date', 'rates.USD'] }],
  'Capital of India': [{ api: 'countries', endpoint: '/info', parameters: { name: 'India' }, fields: ['capital'] }],
  'First three headlines': [
    { api: 'news', endpoint: '/top', fields: ['articles[].title', 'articles[].url'], limit: 3 },
  ],
  'What is Earth, in short?': [
    { api: 'encyclopedia', endpoint: '/summary', parameters: { title: 'Earth' }, fields: ['description'] },
  ],
  'Names of dishes with chicken': [
    { api: 'meal-recipes', endpoint: '/by-ingredient', parameters: { i: 'chicken_breast' }, limit: 10 },
  ],
  'Ingredients of a dish': [{ api: 'meal-recipes', endpoint: '/search', parameters: { s: 'Arrabiata' }, limit: 1 }],
  'Next holidays': [
    {
      api: 'public-holidays',
      endpoint: '/next',
      parameters: { countryCode: 'GB' },
      fields: ['upcoming[].date', 'upcoming[].name'],
      limit: 3,
    },
  ],
  'Largest open events': [{ api: 'prediction-markets', endpoint: '/events', fields: ['events[].title'], limit: 5 }],
  'Top stories, all of them': [{ api: 'tech-forum', endpoint: '/topstories' }],
}

const upstreams = await loadUpstreams()
const server = await startUpstreamServer()
const slugs = [...upstreams.keys()]
const settings = Object.fromEntries(
  slugs.map((slug) => [`UPSTREAM_${slug.toUpperCase().replaceAll('-', '_')}_CAPS`, 'concurrency=9,9000/60']),
)
const gateway = await startGateway({
  isLocal: true,
  environment: {
    ...server.environment(...slugs),
    ...settings,
    UPSTREAM_NEWS_KEY: 'key',
    CONTACT: 'https://gateway.example',
    PLAN_LIMITS: '{"Pro":{"perMinute":100000,"inFlight":50}}',
    LOG_LEVEL: 'silent',
  },
})
try {
  const { live } = await signUp(gateway, 'pro')
  let nextId = 0
  const ask = async (path: string, method: string, params: object) => {
    nextId += 1
    const body = { jsonrpc: '2.0', id: nextId, method, params }
    const answer = await send(gateway, path, { key: live, body })
    return answer.body.result ?? answer.body.error
  }
  const read = (result: { structuredContent?: unknown; content?: unknown }): number =>
    JSON.stringify(result.structuredContent ?? result.content ?? result).length
  const whole = async ({ api, endpoint, parameters = {} }: Call): Promise<number> => {
    const { body } = await send(gateway, `/v1/call/${api}${endpoint}`, { key: live, body: parameters })
    return JSON.stringify(body.data ?? body).length
  }
  const play = (slug: string, path: string) => {
    const { example, request } = upstreams.get(slug)?.endpoints[path] ?? {}
    const bodies = Array.isArray(request?.(Object(example?.parameters), { now: Date.now() }))
    const long = lengthened(example?.response)
    server.play(slug, () => (bodies && Array.isArray(long) ? long[0] : long))
  }

  console.log('endpoint | HTTP | typed tool | call_api | call_apis')
  for (const [slug, { endpoints }] of upstreams) {
    for (const [path, { example }] of Object.entries(endpoints)) {
      play(slug, path)
      const call = { api: slug, endpoint: path, parameters: Object(example.parameters) }
      const name = `${slug}${path}`.replace(/[^A-Za-z0-9]+/g, '_')
      const sizes = [
        await whole(call),
        read(await ask(`/mcp/${slug}`, 'tools/call', { name, arguments: call.parameters })),
        read(await ask('/mcp', 'tools/call', { name: 'call_api', arguments: call })),
        read(await ask('/mcp', 'tools/call', { name: 'call_apis', arguments: { calls: [call, call] } })),
      ]
      console.log(`${slug}${path} | ${sizes.join(' | ')}`)
    }
  }

  console.log('\ntask | characters before | after')
  for (const [task, calls] of Object.entries(TASKS)) {
    let [before, after] = [0, 0]
    for (const call of calls) {
      play(call.api, call.endpoint)
      before += await whole(call)
      after += read(await ask('/mcp', 'tools/call', { name: 'call_api', arguments: call }))
    }
    console.log(`${task} | ${before} | ${after}`)
  }

  console.log('\nlist of tools | tools | characters')
  for (const path of ['/mcp', `/mcp?apis=${slugs.join(',')}`]) {
    const { tools } = await ask(path, 'tools/list', {})
    console.log(`${path.slice(0, 12)} | ${tools.length} | ${JSON.stringify(tools).length}`)
  }
} finally {
  await gateway.stop()
  await server.close()
}

/** A recorded answer with long lists and texts, no longer than the gateway reads. */
function lengthened(recorded: unknown): unknown {
  for (const items of [ITEMS, 100, 20, 5]) {
    const long = grown(recorded, items)
    if (JSON.stringify(long).length <= BODY_MAX) return long
  }
  return recorded
}

function grown(value: unknown, items: number): unknown {
  if (typeof value === 'string') return value.length < PROSE_MIN || /^https?:/.test(value) ? value : repeated(value)
  if (Array.isArray(value)) {
    if (!isObject(value[0])) return value
    return Array.from({ length: items }, (_, index) => value[index % value.length])
  }
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, grown(member, items)]))
}

function repeated(text: string): string {
  return text.repeat(Math.ceil(CHARACTERS / text.length)).slice(0, CHARACTERS)
}
