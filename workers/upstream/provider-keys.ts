import { LRUCache } from 'lru-cache'
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

const KEY_GONE = 'The provider key of this call was deleted or replaced while the call waited.'

export class ProviderKeys {
  readonly #secrets: Secret[]
  readonly #log: Log
  readonly #kept: LRUCache<string, { key: string; accountId: string }>

  constructor(db: Db, secrets: Secret[], log: Log) {
    this.#secrets = secrets
    this.#log = log
    this.#kept = new LRUCache({
      max: KEPT_MAX,
      ttl: KEPT_MS,
      // If look-ups of other keys evict a look-up, its calls still get the key.
      ignoreFetchAbort: true,
      fetchMethod: async (id) => {
        const row = await findProviderKey(db, id)
        if (!row) throw new GatewayError('PROVIDER_KEY_REQUIRED', { message: KEY_GONE })
        if (row.status === 'invalid') throw new GatewayError('PROVIDER_KEY_INVALID')
        return { key: this.open(row), accountId: row.account_id }
      },
    })
  }

  /**
   * Calls that need the same key at once share one look-up, so that many calls of one account do
   * not wait for each other's connections.
   *
   * @throws GatewayError PROVIDER_KEY_REQUIRED, PROVIDER_KEY_INVALID or DEPENDENCY_UNAVAILABLE
   */
  async of(id: string, accountId: string): Promise<string> {
    const kept = await this.#kept.forceFetch(id)
    if (kept.accountId === accountId) return kept.key
    // The key of a team whose owner has just changed has the account of the new owner.
    return await this.readAgain(id, accountId)
  }

  /**
   * Reads a key that may have been deleted, replaced or refused since it was kept.
   *
   * @throws as `of`
   */
  async readAgain(id: string, accountId: string): Promise<string> {
    const now = await this.#kept.forceFetch(id, { forceRefresh: true })
    if (now.accountId !== accountId) throw new GatewayError('PROVIDER_KEY_INVALID')
    return now.key
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
