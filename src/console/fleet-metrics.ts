import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { Context } from '../context.ts'
import type { FleetReader } from '../fleet/fleet-reader.ts'
import type { Snapshot, UpstreamRow } from '../fleet/snapshot.ts'
import { createFleetMetrics } from '../telemetry/metrics.ts'

type FleetMetrics = ReturnType<typeof createFleetMetrics>

/** `/metrics` of the console: its own process, and what is true of the whole fleet. */
export async function metricsRoute(
  scope: FastifyInstance,
  { telemetry }: Context,
  fleetReader: FleetReader,
): Promise<void> {
  const { registry } = telemetry.metrics
  const fleet = createFleetMetrics(registry)
  scope.get('/metrics', { schema: { response: { 200: Type.String() } } }, async (_request, reply) => {
    fill(fleet, await fleetReader.snapshot())
    reply.header('content-type', registry.contentType)
    return await registry.metrics()
  })
}

/** A gauge whose value is not known is absent: 0 would say that all is well. */
function fill(fleet: FleetMetrics, { problems, upstreams, processes, stores }: Snapshot): void {
  for (const gauge of Object.values(fleet)) gauge.reset()
  // One without labels is reset to 0 by prom-client.
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
  // What an operator has switched off is neither paused nor up nor down: nobody can mend an alert
  // about it.
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
