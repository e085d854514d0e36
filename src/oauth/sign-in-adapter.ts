import Provider, { type Adapter, type AdapterPayload } from 'oidc-provider'
import { seal } from '../accounts/secret-box.ts'
import { keys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import { subscriberOf } from '../throttles/client-network.ts'
import { type ArtifactDeps, artifactHash, openStored } from './artifact-adapter.ts'

/**
 * Sign-ins of one IPv4 address or IPv6 /48, and of all, that no user has finished. Of more, the
 * oldest goes: an address takes places of its own, and it takes 200 addresses to reach the sign-ins
 * of others. All together have some 30 MB.
 */
const OF_CLIENT_MAX = 20
const OF_ALL_MAX = 4_000

const keepSignIn = loadScript(new URL('./lua/keep-sign-in.lua', import.meta.url))

/**
 * The store in which the authorization server keeps sign-ins until a user has decided: sealed, in
 * Redis. Anybody begins them without an account, so that they are bounded in number, end by
 * themselves and leave nothing in Postgres.
 */
export class SignInAdapter implements Adapter {
  readonly #deps: ArtifactDeps

  constructor(deps: ArtifactDeps) {
    this.#deps = deps
  }

  async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { config, redis } = this.#deps
    const key = keyOf(id)
    const { secretId, bytes } = seal(config.secrets.encryption, recordOf(key), JSON.stringify(payload))
    const sealed = Buffer.concat([Buffer.from(`${secretId}.`), bytes])
    const lifeMs = expiresIn * 1_000
    // A decision brings no sign-in back that had to go.
    if (payload.result !== undefined) return void (await redis.set(key, sealed, 'PX', lifeMs, 'XX'))
    const client = subscriberOf(Provider.ctx?.ip ?? '')
    const values = ['', sealed, lifeMs, OF_CLIENT_MAX, OF_ALL_MAX]
    await keepSignIn.run(redis, [key, keys.signInsOf(client), keys.allSignIns], values)
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const key = keyOf(id)
    const stored = await this.#deps.redis.getBuffer(key)
    if (stored === null) return undefined
    const end = stored.indexOf('.')
    const secretId = stored.toString('latin1', 0, end)
    return openStored(this.#deps, { record: recordOf(key), secretId, sealed: stored.subarray(end + 1) })
  }

  /**
   * The library destroys a sign-in before it looks up the account and stores the code. The sign-in
   * ends with the request, so that it can be resumed if Postgres was away.
   */
  async destroy(id: string): Promise<void> {
    const { redis, log } = this.#deps
    const end = async (): Promise<void> => {
      // Fails open: the browser that began the sign-in could resume it once more until it expires.
      await redis.del(keyOf(id)).catch((error) => log.debug({ err: error }, 'failed to end a sign-in'))
    }
    const { ctx } = Provider
    if (ctx) ctx.state.endSignIn = end
    else await end()
  }

  /**
   * The library has these for other kinds: a sign-in has no other id, is used up by nothing and has
   * no grant.
   */
  async findByUid(): Promise<undefined> {
    return undefined
  }

  async findByUserCode(): Promise<undefined> {
    return undefined
  }

  async consume(): Promise<undefined> {
    return undefined
  }

  async revokeByGrantId(): Promise<undefined> {
    return undefined
  }
}

/** The hash of the id, as for other artifacts: who reads Redis cannot use it. */
function keyOf(id: string): string {
  return keys.signIn(artifactHash(id).toString('base64url'))
}

function recordOf(key: string): string {
  return `oauth ${key}`
}
