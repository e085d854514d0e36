import type { FastifyInstance } from 'fastify'
import { Registry } from 'prom-client'
import Type from 'typebox'
import type { Context } from '../context.ts'
import type { FleetReader } from '../fleet/fleet-reader.ts'
import type { Snapshot, UpstreamRow } from '../fleet/snapshot.ts'
import { createFleetMetrics } from '../telemetry/metrics.ts'

type FleetMetrics = ReturnType<typeof createFleetMetrics>

/** `/metrics` of the console: metrics of its own process and of the whole fleet. */
export async function metricsRoute(
  scope: FastifyInstance,
  { telemetry }: Context,
  fleetReader: FleetReader,
): Promise<void> {
  // METRICS_PORT has only the metrics of this process. There, the gauges of the fleet would be 0 or
  // old, and would say that the stores are away.
  const registry = Registry.merge([telemetry.metrics.registry])
  registry.setDefaultLabels({ process: 'ops' })
  const fleet = createFleetMetrics(registry)
  scope.get('/metrics', { schema: { response: { 200: Type.String() } } }, async (_request, reply) => {
    fill(fleet, await fleetReader.snapshot())
    reply.header('content-type', registry.contentType)
    return await registry.metrics()
  })
}

/** If a value is unknown, the gauge is absent, because 0 would mean that all is well. */
function fill(fleet: FleetMetrics, { problems, upstreams, processes, stores }: Snapshot): void {
  for (const gauge of Object.values(fleet)) gauge.reset()
  // prom-client resets a gauge without labels to 0, so such a gauge is removed.
  for (const gauge of [fleet.redisBytes, fleet.redisBytesMax, fleet.redisSeconds, fleet.postgresSeconds]) gauge.remove()
  for (const row of upstreams) fillUpstream(fleet, row)
  for (const { rank, label } of problems) fleet.problems.inc({ rank, label })
  for (const { kind } of processes ?? []) fleet.processes.inc({ kind })
  fleet.redisUp.set(stores.redis ? 1 : 0)
  fleet.postgresUp.set(stores.postgres ? 1 : 0)
  if (stores.redis) {
    fleet.redisBytes.set(stores.redis.usedBytes)
    fleet.redisBytesMax.set(stores.redis.maxBytes)
    fleet.redisSeconds.set(stores.redis.latencyMs / 1_000)
  }
  if (stores.postgres) fleet.postgresSeconds.set(stores.postgres.latencyMs / 1_000)
}

function fillUpstream(fleet: FleetMetrics, row: UpstreamRow): void {
  const { slug, enabled, isSwitchedOff, health, queue, cap, paused } = row
  // If an operator switched an API off, it is neither paused nor up nor down, so that no alert is
  // raised that nobody can fix.
  fleet.paused.set({ slug }, paused === null || isSwitchedOff ? 0 : 1)
  if (health && enabled) {
    fleet.score.set({ slug }, health.score)
    fleet.breaker.set({ slug }, health.halfOpenInMs === null ? 0 : 1)
  }
  if (queue) {
    fleet.waiting.set({ slug }, queue.waiting)
    fleet.active.set({ slug }, queue.active)
    fleet.oldest.set({ slug }, queue.oldestMs / 1_000)
  }
  for (const { seconds, left, max } of cap?.rates ?? []) {
    fleet.capLeft.set({ slug, window: `${seconds}s` }, left)
    fleet.capMax.set({ slug, window: `${seconds}s` }, max)
  }
  if (cap) fleet.capNext.set({ slug }, cap.nextSlotMs / 1_000)
}
