import { memoize } from '../../src/async/memoize.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import { openHttpClient } from '../../src/net/http-client.ts'
import { type CapBucket, SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'

/**
 * Opened when first used; unused connections close by themselves. Those for callers' keys are
 * bounded by each key's cap alone. APIs share no connections: one of two with the same address may
 * be kept from private addresses, and a permit of its cap is worth nothing while requests of the
 * other take all connections.
 */
export class HttpClients {
  readonly of = memoize(
    ({ slug, caps, baseUrl, isBaseUrlConfigured }: Api, bucket: CapBucket) =>
      [slug, bucket === SHARED_BUCKET ? caps.concurrency : 'caller keys', isBaseUrlConfigured, baseUrl].join(' '),
    ({ caps, isBaseUrlConfigured }: Api, bucket: CapBucket) =>
      openHttpClient({
        connections: bucket === SHARED_BUCKET ? caps.concurrency : undefined,
        allowPrivate: isBaseUrlConfigured,
      }),
  )

  async close(): Promise<void> {
    await Promise.all([...this.of.made.values()].map((client) => client.close()))
  }
}
