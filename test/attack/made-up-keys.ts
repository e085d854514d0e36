import { waitFor } from '../../src/local/embedded/server-process.ts'
import { send, signUp } from '../support/client.ts'
import type { Outcome, Scenario } from './scenario.ts'

const ATTACKERS = 6
const KEYS_EACH = 5
const PER_HOUR = 60

/** After a pause of this length, no more keys are checked for now, milliseconds. */
const QUIET_MS = 2_000

/** In this time the keys are checked and the catalog shows it, milliseconds. */
const SHOWN_MS_MAX = 20_000

/**
 * Keys that nobody has. An upstream may count requests with made-up keys against the gateway's
 * address.
 */
export const madeUpKeys: Scenario = {
  name: 'made-up-keys',
  claim:
    'requests with invented provider keys and all other requests together stay within the cap, and the catalog shows what is left',
  slugs: ['code-host-user'],
  run: async (gateway, _seconds, upstream): Promise<Outcome> => {
    upstream?.play('code-host-user', ({ headers }, response) => {
      if (headers.authorization !== undefined) return void response.writeHead(401).end()
      return { login: 'someone', id: 1, followers: 1, following: 1 }
    })
    const arrivals = () => upstream?.arrivalsOf('code-host-user').length ?? 0
    const left = async (): Promise<number> => {
      const { body } = await send(gateway, '/v1/catalog/code-host-user')
      return body.limits.rates[0].left
    }
    const before = await left()
    const attackers = await Promise.all(Array.from({ length: ATTACKERS }, () => signUp(gateway)))
    for (let index = 0; index < KEYS_EACH; index += 1) {
      await Promise.all(
        attackers.map(({ token }, account) => {
          const body = { key: `ghp_madeup${account}n${index}${'0'.repeat(20)}` }
          return send(gateway, '/v1/provider-keys/code-host-user', { method: 'PUT', token, body })
        }),
      )
    }
    let [seen, afterKeys, seenAt] = [0, before, performance.now()]
    const isShown = await waitFor(
      async () => {
        if (arrivals() > seen) seenAt = performance.now()
        seen = arrivals()
        afterKeys = await left()
        const isQuiet = seen > 0 && performance.now() - seenAt > QUIET_MS
        return isQuiet && before - afterKeys === seen ? true : undefined
      },
      { timeoutMs: SHOWN_MS_MAX },
    )
    const { live } = await signUp(gateway, 'pro')
    for (let index = 0; index < PER_HOUR; index += 1) {
      await send(gateway, `/v1/call/code-host-user/profile?username=honest-${index}`, { key: live })
    }
    return {
      isPassed: isShown === true && arrivals() <= PER_HOUR,
      figures: {
        'with made-up keys': seen,
        'all together': arrivals(),
        'left before': before,
        'left after': afterKeys,
      },
    }
  },
}
