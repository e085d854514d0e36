import { createHash } from 'node:crypto'
import type { RedisConnection } from './connection.ts'

type Value = string | number | Buffer

/** A Lua script, sent by its hash and in full only where Redis does not know it yet. Its keys share one hash slot. */
export class Script {
  readonly #lua: string
  readonly #sha: string

  constructor(lua: string) {
    this.#lua = lua
    this.#sha = createHash('sha1').update(lua).digest('hex')
  }

  /** Runs it; resolves to Redis' reply as ioredis shapes it. */
  async run(redis: RedisConnection, keys: string[], values: Value[]): Promise<unknown> {
    try {
      return await redis.evalsha(this.#sha, keys.length, ...keys, ...values)
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      return await redis.eval(this.#lua, keys.length, ...keys, ...values)
    }
  }
}
