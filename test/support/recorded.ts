import assert from 'node:assert/strict'
import { loadUpstreams } from '../../src/catalog/catalog.ts'

const upstreams = await loadUpstreams()

/**
 * The recorded answer of an API's first endpoint. A test that counts requests answers with it,
 * because the gateway probes a source after several answers that lack members of the recording, and
 * the test would count the probe.
 */
export function recorded(slug: string): object {
  const [endpoint] = Object.values(upstreams.get(slug)?.endpoints ?? {})
  return endpoint?.example.response ?? assert.fail(`${slug} has no recording`)
}
