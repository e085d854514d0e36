import { send, signUp } from '../support/client.ts'
import type { Gateway } from '../support/gateway.ts'
import { recorded } from '../support/recorded.ts'
import { type Caller, signUpFrom } from './one-person.ts'
import type { Outcome, Scenario } from './scenario.ts'

const ATTACKERS = 7

/**
 * Accounts are free, so somebody makes several accounts in a network to use up an upstream that all
 * callers share.
 */
export const manyAccounts: Scenario = {
  name: 'many-accounts',
  claim: "seven new accounts of one network leave room in an hourly cap: another network's account is served at once",
  slugs: ['code-host-user'],
  environment: { TRUST_PROXY: '127.0.0.1', SIGNUP_PER_HOUR: '0', SIGNUP_PER_DAY: '0' },
  run: async (gateway, _seconds, upstream): Promise<Outcome> => {
    // The answer is complete. If it lacked members, a probe would take a slot of the cap.
    upstream?.play('code-host-user', () => recorded('code-host-user'))
    const accounts = []
    for (let index = 0; index < ATTACKERS; index += 1) accounts.push(await signUpFrom(gateway, '203.0.113.7'))
    // Somebody else used the API today. If only one network had used it, the cap would hold nothing
    // back.
    const before = await call(gateway, { ...(await signUpFrom(gateway, '192.0.2.8')), name: 'before' })
    const statuses: number[] = []
    for (let round = 0; round < 10; round += 1) {
      const calls = accounts.map((account, index) => call(gateway, { ...account, name: `user-${round}-${index}` }))
      statuses.push(...(await Promise.all(calls)))
    }
    const startedAt = performance.now()
    const honest = await call(gateway, { ...(await signUpFrom(gateway, '198.51.100.9')), name: 'honest' })
    return {
      isPassed: before === 200 && honest === 200,
      figures: {
        'calls of the seven accounts': statuses.length,
        served: statuses.filter((status) => status === 200).length,
        'status of the other network': honest,
        'answered after, ms': Math.round(performance.now() - startedAt),
      },
    }
  },
}

/** The other side of the same rule: an account that is alone may use the whole cap. */
export const singleTenant: Scenario = {
  name: 'single-tenant',
  claim: 'an account that has the service to itself gets all of an hourly cap',
  slugs: ['code-host-user'],
  run: async (gateway, _seconds, upstream): Promise<Outcome> => {
    upstream?.play('code-host-user', () => recorded('code-host-user'))
    return await takeWholeCap(gateway, 60, (index) => `code-host-user/profile?username=tenant-${index}`)
  },
}

/**
 * A new account makes two calls more than an API's hourly cap allows, and must get the whole cap.
 */
export async function takeWholeCap(
  gateway: Gateway,
  perHour: number,
  pathOf: (index: number) => string,
): Promise<Outcome> {
  const { live } = await signUp(gateway, 'pro')
  let served = 0
  for (let index = 0; index < perHour + 2; index += 1) {
    const { status } = await send(gateway, `/v1/call/${pathOf(index)}`, { key: live })
    if (status === 200) served += 1
  }
  return { isPassed: served === perHour, figures: { served, 'of the cap': perHour } }
}

async function call(gateway: Gateway, { key, address, name }: Caller & { name: string }): Promise<number> {
  const path = `/v1/call/code-host-user/profile?username=${name}`
  return (await send(gateway, path, { key, headers: { 'x-forwarded-for': address } })).status
}
