import { providerKeyRecord } from '../../src/accounts/sealed-records.ts'
import { open } from '../../src/accounts/secret-box.ts'
import type { Secret } from '../../src/config.ts'
import type { Db } from '../../src/db/database.ts'
import { findProviderKey } from '../../src/db/provider-keys.ts'
import type { ProviderKey } from '../../src/db/schema.ts'
import { GatewayError } from '../../src/errors.ts'
import type { Log } from '../../src/log.ts'

/** A replaced key has a new id, so what is kept is never wrong. Milliseconds. */
const KEPT_MS = 10_000

const KEPT_MAX = 1_000

export class ProviderKeys {
  readonly #db: Db
  readonly #secrets: Secret[]
  readonly #log: Log
  readonly #kept = new Map<string, { key: string; until: number }>()

  constructor(db: Db, secrets: Secret[], log: Log) {
    this.#db = db
    this.#secrets = secrets
    this.#log = log
  }

  /** @throws GatewayError PROVIDER_KEY_REQUIRED, PROVIDER_KEY_INVALID or DEPENDENCY_UNAVAILABLE */
  async of(id: string, accountId: string): Promise<string> {
    const known = this.#kept.get(id)
    if (known && Date.now() < known.until) return known.key
    const row = await findProviderKey(this.#db, id)
    if (!row) throw new GatewayError('PROVIDER_KEY_REQUIRED')
    if (row.account_id !== accountId) throw new GatewayError('PROVIDER_KEY_INVALID')
    const key = this.open(row)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size >= KEPT_MAX && oldest !== undefined) this.#kept.delete(oldest)
    this.#kept.set(id, { key, until: Date.now() + KEPT_MS })
    return key
  }

  /**
   * Whether this process has the encryption key that sealed a record: while it is replaced, others
   * may have it first.
   */
  hasSecretOf({ secret_id }: Pick<ProviderKey, 'secret_id'>): boolean {
    return this.#secrets.some(({ id }) => id === secret_id)
  }

  /** @throws GatewayError PROVIDER_KEY_INVALID */
  open(row: ProviderKey): string {
    const record = providerKeyRecord(row.team_id ?? row.user_id ?? '', row.slug)
    try {
      return open(this.#secrets, record, { secretId: row.secret_id, bytes: row.sealed })
    } catch (cause) {
      this.#log.error({ err: cause, providerKeyId: row.id }, 'failed to open a provider key')
      throw new GatewayError('PROVIDER_KEY_INVALID', { cause })
    }
  }
}
