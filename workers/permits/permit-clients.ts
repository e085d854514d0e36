import type { CapBucket } from '../../src/caps/bucket.ts'
import type { UpstreamCaps } from '../../src/caps/upstream-caps.ts'
import type { Log } from '../../src/log.ts'
import type { GrantLedger } from './grant-ledger.ts'
import { PermitClient } from './permit-client.ts'

export interface PermitClientsDeps {
  caps: UpstreamCaps
  log: Log
  grants: GrantLedger
}

/** The permit clients of a worker, one for each cap it uses. */
export class PermitClients {
  readonly #deps: PermitClientsDeps
  readonly #clients = new Map<string, PermitClient>()

  constructor(deps: PermitClientsDeps) {
    this.#deps = deps
  }

  of({ slug }: { slug: string }, bucket: CapBucket): PermitClient {
    const { caps, log, grants } = this.#deps
    const cap = caps.of({ slug }, bucket)
    const known = this.#clients.get(cap.name)
    if (known) return known
    const onGranted = (granted: number): void => grants.add({ slug, bucket, caps: cap.rules, granted })
    const client = new PermitClient({ cap, log, onGranted })
    this.#clients.set(cap.name, client)
    return client
  }

  /** Handles a wake-up, `<cap's name> <waiter>`; the waiter may be another worker's. */
  onWakeUp(message: string): void {
    const end = message.indexOf(' ')
    this.#clients.get(message.slice(0, end))?.wake(message.slice(end + 1))
  }
}
