import { memoize } from '../../src/async/memoize.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import { openHttpClient } from '../../src/net/http-client.ts'
import { type CapBucket, SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'

/**
 * Opened when first used; unused connections close by themselves. Those for callers' keys are
 * bounded by each key's cap alone.
 */
export class HttpClients {
  readonly of = memoize(
    ({ caps, baseUrl }: Api, bucket: CapBucket) =>
      bucket === SHARED_BUCKET ? `${caps.concurrency} ${baseUrl}` : `caller keys ${baseUrl}`,
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
