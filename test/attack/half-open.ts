import { setTimeout as delay } from 'node:timers/promises'
import { send } from '../support/client.ts'
import { type Caller, signUpFrom } from './one-person.ts'
import type { Outcome, Scenario } from './scenario.ts'

const ATTACKERS = 10
const OTHERS = 16

/** A value of a declared parameter makes an upstream fail, and a person sends nothing else. */
export const halfOpen: Scenario = {
  name: 'half-open',
  claim:
    'ten accounts of two networks that repeat a value at which an upstream fails do not affect the calls of others',
  slugs: ['dictionary'],
  environment: { TRUST_PROXY: '127.0.0.1', SIGNUP_PER_MINUTE: '0', SIGNUP_PER_HOUR: '0', SIGNUP_PER_DAY: '0' },
  run: async (gateway, seconds, upstream): Promise<Outcome> => {
    upstream?.play('dictionary', ({ url }, response) => {
      if (url.includes('poison')) return void response.writeHead(500).end()
      return [{ word: 'word', meanings: [{ partOfSpeech: 'noun', definitions: [{ definition: 'what is said' }] }] }]
    })
    const attackers: Caller[] = []
    for (let index = 0; index < ATTACKERS; index += 1) {
      attackers.push(await signUpFrom(gateway, index % 2 === 0 ? '203.0.113.7' : '2001:470:1234:1::1'))
    }
    const others: Caller[] = []
    for (let index = 0; index < OTHERS; index += 1) others.push(await signUpFrom(gateway, `198.51.${100 + index}.9`))
    let words = 0
    const call = async ({ key, address }: Caller, kind: string): Promise<number> => {
      words += 1
      const headers = { 'x-forwarded-for': address }
      return (await send(gateway, `/v1/call/dictionary/define?word=${kind}${words}`, { key, headers })).status
    }
    let isEnding = false
    const attacks = attackers.map(async (attacker) => {
      while (!isEnding) {
        await call(attacker, 'poison')
        await delay(50)
      }
    })
    const statuses: number[] = []
    const endsAt = performance.now() + 1_000 * (seconds >= 10 ? 60 : 3 * seconds)
    let shown = 0
    while (performance.now() < endsAt) {
      for (const other of others.slice(0, 2)) statuses.push(await call(other, 'word'))
      others.push(...others.splice(0, 2))
      const { body } = await send(gateway, '/v1/catalog/dictionary')
      if (body.health.status === 'Down') shown += 1
      await delay(1_000)
    }
    isEnding = true
    await Promise.all(attacks)
    const served = statuses.filter((status) => status === 200).length
    return {
      isPassed: statuses.length > 0 && served === statuses.length && shown === 0,
      figures: { 'calls of others': statuses.length, served, 'times shown as Down': shown },
    }
  },
}
