import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { Context } from '../context.ts'
import type { Overview } from '../fleet/overview.ts'
import type { Snapshot } from '../fleet/snapshot.ts'
import { createFleetMetrics } from '../telemetry/metrics.ts'

type FleetMetrics = ReturnType<typeof createFleetMetrics>

/** `/metrics` of the console: its own process, and what is true of the whole fleet. */
export async function metricsRoute(scope: FastifyInstance, { telemetry }: Context, overview: Overview): Promise<void> {
  const { registry } = telemetry.metrics
  const fleet = createFleetMetrics(registry)
  scope.get('/metrics', { schema: { response: { 200: Type.String() } } }, async (_request, reply) => {
    fill(fleet, await overview.snapshot())
    reply.header('content-type', registry.contentType)
    return await registry.metrics()
  })
}

function fill(fleet: FleetMetrics, { upstreams, processes, stores }: Snapshot): void {
  for (const row of upstreams) {
    const { slug, cap } = row
    fleet.score.set({ slug }, row.score)
    fleet.breaker.set({ slug }, row.status === 'Down' ? 1 : 0)
    fleet.waiting.set({ slug }, row.waiting)
    fleet.active.set({ slug }, row.active)
    fleet.oldest.set({ slug }, row.oldestMs / 1_000)
    fleet.paused.set({ slug }, row.paused ? 1 : 0)
    for (const { seconds, left } of cap?.rates ?? []) fleet.capLeft.set({ slug, window: `${seconds}s` }, left)
    if (cap) fleet.capNext.set({ slug }, cap.nextSlotMs / 1_000)
  }
  fleet.processes.reset()
  for (const { kind } of processes) fleet.processes.inc({ kind })
  if (stores.redis) {
    fleet.redisBytes.set(stores.redis.usedBytes)
    fleet.redisSeconds.set(stores.redis.latencyMs / 1_000)
  }
  if (stores.postgres) fleet.postgresSeconds.set(stores.postgres.latencyMs / 1_000)
}
