import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, buildConnector } from 'undici'
import { PERMIT_AGE_MS_MAX } from '../../src/caps/timing.ts'
import type { Upstream } from '../../src/catalog/upstream.ts'
import { loadConfig } from '../../src/config.ts'
import { createLog } from '../../src/log.ts'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { channels, keys, upstreamKeys } from '../../src/redis/keys.ts'
import { RequestCoalescer } from '../../workers/cache/request-coalescer.ts'
import { callThroughCache } from '../../workers/jobs/cached-call.ts'
import type { UpstreamCall } from '../../workers/upstream/call-upstream.ts'
import type { CallProgress } from '../../workers/upstream/outcome.ts'
import { openWorkerContext } from '../../workers/worker-context.ts'
import { testSecrets, until } from '../support/gateway.ts'
import { startServices } from '../support/services.ts'

export const SLUG = 'encyclopedia'
export const PAGE = JSON.stringify({ title: 'Earth', extract: 'A planet.' })

interface Behaviour {
  slowConnections?: number
  rateHeaders?: Upstream['rateHeaders']
}

/**
 * A worker's parts, and a local upstream in the place of the real one. `slowConnections` take
 * longer than a permit lasts.
 */
export async function openLocalWorker(
  t: TestContext,
  listener: RequestListener,
  { slowConnections = 0, rateHeaders }: Behaviour = {},
) {
  const paths: string[] = []
  const server = createServer((request, response) => {
    paths.push(request.url ?? '')
    listener(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const services = await startServices()
  const { redisUrl, databaseUrl } = services
  const config = loadConfig({
    ...testSecrets(),
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    UPSTREAM_ENCYCLOPEDIA_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  })
  const { deps, close } = await openWorkerContext(config, createLog({ level: 'silent', pretty: false }, 'test'))
  const connect = buildConnector({})
  let connections = 0
  const client = new Agent({
    connections: 1,
    connect: (options, callback) => {
      connections += 1
      void delay(connections <= slowConnections ? PERMIT_AGE_MS_MAX + 50 : 0).then(() => connect(options, callback))
    },
  })
  t.after(async () => {
    await client.destroy()
    await close()
    server.closeAllConnections()
    server.close()
    await services.stop()
  })
  // Redis has lost nothing, so caps start with an empty past.
  await deps.redis.set(keys.rememberedSince, 0)
  const known = deps.catalog.get(SLUG) ?? assert.fail()
  const api = rateHeaders ? { ...known, upstream: { ...known.upstream, rateHeaders } } : known
  const { declaration: endpoint } = api.endpoints.get('/summary') ?? api.endpoints.get('summary') ?? assert.fail()
  /** By default `coalescer` is the lead of another process. */
  const call = async (
    id: string,
    {
      accountId = 'account',
      group = undefined as string | undefined,
      title = 'Earth',
      timeMs = 30_000,
      coalescer = new RequestCoalescer(deps.redis),
      signal = new AbortController().signal,
      joinsLate = false,
      extra = [] as [string, string][],
      progress = { reach: 'unsent' } as CallProgress,
    } = {},
  ) => {
    const now = deps.clock.now()
    const request: UpstreamCall = {
      api,
      endpoint,
      call: {
        ...{ v: 1, id, accountId, mode: 'live', slug: SLUG, endpoint: 'summary' },
        ...{ parameters: { title }, extra, raw: false, isAsync: false, replyTo: '' },
        ...{ limitsAcquiredAt: Math.floor(now), deadline: Math.floor(now + timeMs) },
        ...(group === undefined ? {} : { group }),
        ...(joinsLate ? {} : { ticket: { tag: 0 } }),
      },
      currentKey: () => undefined,
      bucket: SHARED_BUCKET,
      times: { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 },
      progress,
      remainingMs: () => now + timeMs - deps.clock.now(),
      signal,
    }
    return (await callThroughCache({ ...deps, coalescer, clientOf: () => client }, request)).outcome
  }
  /** An open breaker whose pause is over. */
  const openBreaker = async () => {
    await deps.redis.hset(upstreamKeys.health(SLUG), {
      state: 'Down',
      open: '1',
      trialAt: '1',
      trialBy: '',
      pause: '30000',
      good: 0,
    })
    await deps.redis.publish(channels.health, SLUG)
    await until(() => deps.health.breakerWaitMs(SLUG) === 0)
  }
  return { deps, api, call, openBreaker, paths }
}
