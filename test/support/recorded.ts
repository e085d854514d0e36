import assert from 'node:assert/strict'
import { loadUpstreams } from '../../src/catalog/catalog.ts'

const upstreams = await loadUpstreams()

/**
 * The answer of a source when its first endpoint was recorded. If an answer lacks members of the
 * recording, the gateway notices. After several such answers it probes the source, and a test that
 * counts requests would count the probe.
 */
export function recorded(slug: string): object {
  const [endpoint] = Object.values(upstreams.get(slug)?.endpoints ?? {})
  return endpoint?.example.response ?? assert.fail(`${slug} has no recording`)
}
