import type { CapScope } from '../../src/caps/cap-keys.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import { capKeys } from '../../src/redis/keys.ts'
import { PermitClient, type PermitClientDeps } from './permit-client.ts'

/** A worker's desks, one for each cap it uses. */
export class PermitClients {
  readonly #sources: PermitClientDeps
  readonly #desks = new Map<string, PermitClient>()

  constructor(sources: PermitClientDeps) {
    this.#sources = sources
  }

  of(api: Api, scope: CapScope): PermitClient {
    const name = capKeys.prefix(api.slug, scope)
    const known = this.#desks.get(name)
    if (known) {
      known.use(api)
      return known
    }
    const desk = new PermitClient(this.#sources, api, scope)
    this.#desks.set(name, desk)
    return desk
  }

  /** Hears that a parked call may have its turn, which may be another worker's: `<cap's prefix> <member>`. */
  hear(message: string): void {
    const end = message.indexOf(' ')
    this.#desks.get(message.slice(0, end))?.turn(message.slice(end + 1))
  }
}
