import { createHash } from 'node:crypto'
import type { Catalog } from '../catalog/catalog.ts'
import type { Upstream } from '../catalog/upstream.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'

/**
 * The APIs that a process has loaded: the digest of the document by slug; empty for a built-in
 * upstream.
 */
export type KnownApis = Readonly<Record<string, string>>

/** Lifetime of a list in Redis, seconds. Processes write their list again long before its end. */
const LIFE_SECONDS = 600

export function knownApis(catalog: Catalog): KnownApis {
  return Object.fromEntries([...catalog.values()].map((api) => [api.slug, digestOf(api)]))
}

/**
 * The digest of an API's document. Processes with different digests have loaded different
 * documents.
 */
export function digestOf({ upstream }: { upstream: Pick<Upstream, 'own'> }): string {
  return upstream.own?.digest ?? ''
}

/** The digest of a whole list. Heartbeats carry the digest, because the list may be long. */
export function digestOfAll(apis: KnownApis): string {
  return createHash('sha256').update(JSON.stringify(apis)).digest('hex').slice(0, 12)
}

/** Writes a list to Redis. Fails open: an unreadable list counts as having every API. */
export async function publishApis(redis: RedisConnection, apis: KnownApis): Promise<void> {
  await redis.set(keys.apis(digestOfAll(apis)), JSON.stringify(apis), 'EX', LIFE_SECONDS)
}

/** The lists of processes by digest. Each list is read once. */
export class ApiLists {
  readonly #redis: RedisConnection
  readonly #lists = new Map<string, KnownApis>()

  constructor(redis: RedisConnection) {
    this.#redis = redis
  }

  /**
   * Reads the lists that this process has not read yet, and forgets the lists that no process uses
   * now.
   *
   * @throws what Redis throws
   */
  async read(digests: readonly (string | undefined)[]): Promise<void> {
    const wanted = new Set(digests.filter((digest) => digest !== undefined))
    for (const digest of this.#lists.keys()) if (!wanted.has(digest)) this.#lists.delete(digest)
    const unknown = [...wanted].filter((digest) => !this.#lists.has(digest))
    await Promise.all(
      unknown.map(async (digest) => {
        const text = await this.#redis.get(keys.apis(digest))
        if (text !== null) this.#lists.set(digest, JSON.parse(text))
      }),
    )
  }

  /**
   * The list with a digest. Undefined for a process of an earlier version, and while the list
   * cannot be read.
   * @until 0.4.0
   */
  of(digest: string | undefined): KnownApis | undefined {
    return digest === undefined ? undefined : this.#lists.get(digest)
  }
}
