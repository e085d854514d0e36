import Type, { type Static } from 'typebox'
import { SHARED_BUCKET } from '../caps/bucket.ts'
import type { Api } from '../catalog/catalog.ts'
import { nullable } from '../catalog/json.ts'
import type { Context } from '../context.ts'
import { readProcesses } from '../telemetry/heartbeat.ts'
import { type Minute, readMinute } from '../telemetry/minute-stats.ts'

const MINUTE_MS = 60_000

const UpstreamOverview = Type.Object({
  slug: Type.String(),
  enabled: Type.Boolean(),
  queue: Type.Object({
    waiting: Type.Integer(),
    active: Type.Integer(),
    delayed: Type.Integer(),
    failed: Type.Integer(),
    paused: Type.Boolean(),
  }),
  caps: Type.Object({
    concurrency: Type.Integer(),
    underWay: Type.Integer(),
    nextSlotMs: Type.Integer({ description: 'When the next request may start, milliseconds from now' }),
    rates: Type.Array(Type.Object({ max: Type.Integer(), seconds: Type.Number(), left: Type.Integer() })),
  }),
  health: Type.Object({
    status: Type.Enum(['Healthy', 'Degraded', 'Down']),
    score: Type.Integer(),
    since: nullable(Type.String({ format: 'date-time' })),
    cause: nullable(Type.String()),
  }),
  lastMinute: Type.Record(Type.String(), Type.Integer(), { description: 'Calls of the last full minute by code' }),
})

export const OverviewAnswer = Type.Object({
  at: Type.String({ format: 'date-time' }),
  callsLastMinute: Type.Integer(),
  upstreams: Type.Array(UpstreamOverview),
  processes: Type.Array(
    Type.Object({
      kind: Type.String(),
      host: Type.String(),
      pid: Type.Integer(),
      startedAt: Type.String({ format: 'date-time' }),
      busy: Type.Number({ description: 'Share of time its event loop was busy, 0 to 1' }),
      lagMs: Type.Number(),
      memoryBytes: Type.Integer(),
      inFlight: Type.Integer(),
    }),
  ),
})

type OverviewDeps = Pick<Context, 'catalog' | 'redis' | 'caps' | 'queues' | 'health'>

/** The whole fleet at a glance: queues, what is left of caps, health, rates, processes. */
export async function readOverview(sources: OverviewDeps): Promise<Static<typeof OverviewAnswer>> {
  const { catalog, redis } = sources
  const [minute, processes, upstreams] = await Promise.all([
    readMinute(redis, Date.now() - MINUTE_MS),
    readProcesses(redis),
    Promise.all([...catalog.values()].map((api) => readUpstream(sources, api))),
  ])
  return {
    at: new Date().toISOString(),
    callsLastMinute: [...minute.calls.values()].reduce((sum, calls) => sum + calls, 0),
    upstreams: upstreams.map((upstream) => ({ ...upstream, lastMinute: callsOf(minute, upstream.slug) })),
    processes: processes.map(({ kind, host, pid, startedAt, busy, lagMs, memoryBytes, inFlight }) => {
      return { kind, host, pid, startedAt: new Date(startedAt).toISOString(), busy, lagMs, memoryBytes, inFlight }
    }),
  }
}

async function readUpstream({ caps: allCaps, queues, health }: OverviewDeps, api: Api) {
  const { slug, caps, enabled } = api
  const queue = queues.of(slug)
  const [counts, paused, cap] = await Promise.all([
    queue.getJobCounts('wait', 'prioritized', 'active', 'delayed', 'failed'),
    queue.isPaused(),
    allCaps.of(api, SHARED_BUCKET).read(),
  ])
  const { wait = 0, prioritized = 0, active = 0, delayed = 0, failed = 0 } = counts
  const { status, score, since, cause } = health.of(slug)
  return {
    slug,
    enabled,
    queue: { waiting: wait + prioritized, active, delayed, failed, paused },
    caps: {
      concurrency: caps.concurrency,
      underWay: cap.underWay,
      nextSlotMs: Math.round(cap.nextSlotMs),
      rates: caps.rates.map(({ max, seconds }, index) => ({ max, seconds, left: cap.left[index] ?? max })),
    },
    health: { status, score, since: since === undefined ? null : new Date(since).toISOString(), cause: cause ?? null },
  }
}

function callsOf({ calls }: Minute, slug: string): Record<string, number> {
  const own = [...calls].flatMap(([field, count]): [string, number][] =>
    field.startsWith(`${slug}|`) ? [[field.slice(slug.length + 1), count]] : [],
  )
  return Object.fromEntries(own)
}
