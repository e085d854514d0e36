import { hash } from 'node:crypto'
import type { UpstreamCaps } from '../src/caps/upstream-caps.ts'
import type { Api, Catalog } from '../src/catalog/catalog.ts'
import { apiSlugOf, sourcesOf } from '../src/catalog/fallback.ts'
import { forgetHealth } from '../src/health/record.ts'
import type { Log } from '../src/log.ts'
import { SHARED_BUCKET } from '../src/queue/wait-queue-entry.ts'
import type { RedisClock } from '../src/redis/clock.ts'
import type { RedisConnection } from '../src/redis/connection.ts'
import { keys } from '../src/redis/keys.ts'

export interface SourceAddressesDeps {
  redis: RedisConnection
  clock: Pick<RedisClock, 'now'>
  caps: Pick<UpstreamCaps, 'of'>
  catalog: Pick<Catalog, 'values'>
  /** The APIs that this process serves; none: all. */
  only: readonly string[]
  log: Log
}

/**
 * Forgets the health of a source, and what its limiter said, once a worker calls the source under
 * another address: of the environment, of a changed document, or for a key that an operator has
 * set. Otherwise the breaker that the former address opened would refuse calls for minutes. The
 * permits of the cap stay in its log, because the new address may lead to the same source.
 */
export class SourceAddresses {
  readonly #deps: SourceAddressesDeps
  /** Digests of the addresses by source, as this process has noted them in Redis. */
  readonly #noted = new Map<string, string>()

  constructor(deps: SourceAddressesDeps) {
    this.#deps = deps
  }

  /**
   * Compares the addresses of the sources with the addresses that workers noted last. Never
   * rejects: if it fails, the next comparison does it.
   */
  async note(): Promise<void> {
    const { redis, catalog, only, log } = this.#deps
    const sources = sourcesOf(catalog).filter(({ slug }) => only.length === 0 || only.includes(apiSlugOf(slug)))
    const current = sources.map((api) => ({ api, digest: digestOf(api) }))
    const changed = current.filter(({ api, digest }) => this.#noted.get(api.slug) !== digest)
    if (changed.length === 0) return
    try {
      const before = await redis.hmget(keys.sourceAddresses, ...changed.map(({ api }) => api.slug))
      const others = changed.filter(({ digest }, index) => before[index] && before[index] !== digest)
      for (const { api } of others) await this.#forget(api)
      await redis.hset(keys.sourceAddresses, new Map(changed.map(({ api, digest }) => [api.slug, digest])))
      for (const { api, digest } of changed) this.#noted.set(api.slug, digest)
    } catch (error) {
      log.warn({ err: error }, 'failed to compare the addresses of sources with the addresses before')
    }
  }

  async #forget(api: Api): Promise<void> {
    const { redis, clock, caps, log } = this.#deps
    await forgetHealth(redis, api.slug, clock.now())
    await caps.of(api, SHARED_BUCKET).beginGradually({ forgetsLimit: true })
    log.info({ slug: api.slug }, 'the source has another address; its health begins anew')
  }
}

/**
 * Digest of an address, because an address may contain a secret. An address that the operator
 * chose differs from the same address in a document, to which no request goes if it is private.
 */
function digestOf({ baseUrl, isBaseUrlConfigured }: Api): string {
  const address = isBaseUrlConfigured ? `${baseUrl} chosen` : baseUrl
  return hash('sha256', address, 'base64url').slice(0, 22)
}
