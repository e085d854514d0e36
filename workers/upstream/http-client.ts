import { memoize } from '../../src/async/memoize.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import { openHttpClient } from '../../src/http/http-client.ts'

/** Opened when first used; unused connections close by themselves. */
export class HttpClients {
  readonly of = memoize(
    ({ caps, baseUrl }: Api) => `${caps.concurrency} ${baseUrl}`,
    ({ caps, isBaseUrlConfigured }: Api) =>
      openHttpClient({ connections: caps.concurrency, allowPrivate: isBaseUrlConfigured }),
  )

  async close(): Promise<void> {
    await Promise.all([...this.of.made.values()].map((client) => client.close()))
  }
}
