import Provider, { type Adapter, type AdapterPayload } from 'oidc-provider'
import { seal } from '../accounts/secret-box.ts'
import { keys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import { subscriberOf } from '../throttles/client-network.ts'
import { type ArtifactDeps, artifactHash, openStored } from './artifact-adapter.ts'

/**
 * Unfinished sign-ins of one IPv4 address or IPv6 /48, and of all addresses. Beyond a limit the
 * oldest is deleted. An address first displaces its own sign-ins, and only 200 addresses together
 * can displace the sign-ins of others. All sign-ins together take about 30 MB.
 */
const OF_CLIENT_MAX = 20
const OF_ALL_MAX = 4_000

const keepSignIn = loadScript(new URL('./lua/keep-sign-in.lua', import.meta.url))

/**
 * The store in which the authorization server keeps sign-ins until a user has decided, sealed in
 * Redis. Anybody can begin a sign-in without an account. So the number of sign-ins is bounded, they
 * expire by themselves, and they leave nothing in Postgres.
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
    // If the sign-in was deleted meanwhile, a decision does not bring it back.
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
   * Does not delete the sign-in yet, because the library destroys it before it looks up the account
   * and stores the code. The request deletes it at its end, unless it failed with a 5xx: if
   * Postgres was away, the user can repeat the step.
   */
  async destroy(id: string): Promise<void> {
    const { redis, log } = this.#deps
    const end = async (): Promise<void> => {
      // Fails open: the browser that began the sign-in could resume it once more before it expires.
      await redis.del(keyOf(id)).catch((error) => log.debug({ err: error }, 'failed to end a sign-in'))
    }
    const { ctx } = Provider
    if (ctx) ctx.state.endSignIn = end
    else await end()
  }

  /**
   * The library needs these methods for other kinds. A sign-in has no second id, is never consumed,
   * and has no grant.
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

/** The hash of the id, as for other artifacts, so that whoever reads Redis cannot use the id. */
function keyOf(id: string): string {
  return keys.signIn(artifactHash(id).toString('base64url'))
}

function recordOf(key: string): string {
  return `oauth ${key}`
}
