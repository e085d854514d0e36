import type { Dispatcher } from 'undici'
import type { Api } from '../../src/catalog/catalog.ts'
import { openHttpClient } from '../../src/http/http-client.ts'

/** Connections per upstream address and how many there may be, opened when first used; what is unused closes itself. */
export class HttpClients {
  readonly #clients = new Map<string, Dispatcher>()

  of(api: Api): Dispatcher {
    const connections = api.caps.concurrency
    const name = `${connections} ${api.baseUrl}`
    const known = this.#clients.get(name)
    if (known) return known
    const client = openHttpClient({ connections, allowPrivate: api.isBaseUrlConfigured })
    this.#clients.set(name, client)
    return client
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients.values()].map((client) => client.close()))
  }
}
