import { memoize } from '../../src/async/memoize.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import { openHttpClient } from '../../src/net/http-client.ts'
import { type CapBucket, SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'

/**
 * Opened when first used; unused connections close by themselves. Those for callers' keys are
 * bounded by each key's cap alone. APIs with the same address share no connections: an operator
 * may open private addresses to one API alone, and a permit of a cap is worth nothing if the
 * requests of another API have taken all connections.
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
