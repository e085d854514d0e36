import assert from 'node:assert/strict'
import { loadUpstreams } from '../../src/catalog/catalog.ts'

const upstreams = await loadUpstreams()

/**
 * What a source answered when its first endpoint was recorded. An answer that lacks members of the
 * recording is noticed: after several of them the gateway probes the source, and a test that counts
 * requests would count the probe.
 */
export function recorded(slug: string): object {
  const [endpoint] = Object.values(upstreams.get(slug)?.endpoints ?? {})
  return endpoint?.example.response ?? assert.fail(`${slug} has no recording`)
}
