import { setTimeout as delay } from 'node:timers/promises'
import { send, sendPatiently, signUp } from '../support/client.ts'
import type { Outcome, Scenario } from './scenario.ts'

const OTHERS = 8

/**
 * What two free accounts send so that an upstream fails: addresses that are too long for it, and
 * requests whose answers are too large or have another form.
 */
const HOSTILE = [
  '/v1/call/weather/current?latitude=1&longitude=1&hourly=temperature_2m&past_days=92',
  `/v1/call/weather/current?latitude=2&longitude=2&x=${'!'.repeat(3_000)}`,
  '/v1/call/weather/current?latitude=3&longitude=3&models=all&daily=all',
  '/v1/call/weather/current?latitude=4&longitude=4&fail=1',
]

/** Callers whose own input makes an upstream fail. */
export const closeApi: Scenario = {
  name: 'close-api',
  claim:
    'callers whose own parameters make an upstream fail do not make it unavailable: all calls of others are served',
  slugs: ['weather'],
  environment: { UPSTREAM_WEATHER_CAPS: 'concurrency=16,100000/60' },
  run: async (gateway, seconds, upstream): Promise<Outcome> => {
    upstream?.play('weather', ({ url }, response) => {
      const weather = { latitude: 1, longitude: 1, current_weather: { time: '2026-01-01T00:00', temperature: 3 } }
      if (url.length > 2_000) return void response.writeHead(431).end()
      if (url.includes('hourly=')) return { ...weather, hourly: 'x'.repeat(3 * 1_024 * 1_024) }
      if (url.includes('models=') || url.includes('fail=')) return void response.writeHead(500).end('<html>')
      return weather
    })
    const attackers = await Promise.all([signUp(gateway), signUp(gateway)])
    const others = await Promise.all(Array.from({ length: OTHERS }, () => signUp(gateway)))
    const outcomes: Record<string, number> = {}
    let isEnding = false
    const attack = async (): Promise<void> => {
      for (let count = 0; !isEnding; count += 1) {
        const { live } = attackers[count % attackers.length] ?? { live: '' }
        const path = HOSTILE[count % HOSTILE.length] ?? ''
        await send(gateway, path, { key: live }).catch(() => undefined)
        const body = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`p${index}`, 'y'.repeat(500)]))
        await send(gateway, '/v1/call/weather/current', { key: live, body: { latitude: 5, longitude: 5, ...body } })
      }
    }
    const attacking = attack()
    for (let round = 0; round < Math.min(seconds, 10); round += 1) {
      const calls = others.map(({ live }, index) =>
        sendPatiently(gateway, `/v1/call/weather/current?latitude=${10 + round}&longitude=${10 + index}`, {
          key: live,
        }),
      )
      for (const { status } of await Promise.all(calls)) outcomes[status] = (outcomes[status] ?? 0) + 1
      await delay(1_000)
    }
    isEnding = true
    await attacking
    const served = outcomes['200'] ?? 0
    const sent = Object.values(outcomes).reduce((sum, count) => sum + count, 0)
    return { isPassed: sent > 0 && served === sent, figures: { 'calls of others': sent, served } }
  },
}
