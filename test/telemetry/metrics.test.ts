import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createMetrics } from '../../src/telemetry/metrics.ts'

const idle = { inFlight: () => 0, busy: () => 0 }

it('the metrics of the process exist once, and each registry of the process shows them with its own label', async () => {
  const [web, worker] = [createMetrics('web', idle).registry, createMetrics('worker', idle).registry]
  for (const name of ['nodejs_gc_duration_seconds', 'nodejs_eventloop_lag_seconds']) {
    assert.ok(web.getSingleMetric(name))
    assert.equal(web.getSingleMetric(name), worker.getSingleMetric(name))
  }
  for (const [process, registry] of Object.entries({ web, worker }))
    assert.match(await registry.metrics(), new RegExp(`^process_cpu_seconds_total{process="${process}"}`, 'm'))
  assert.equal(web.getSingleMetric('nodejs_active_handles_total'), undefined)
  assert.notEqual(web.getSingleMetric('agw_in_flight'), worker.getSingleMetric('agw_in_flight'))
})
