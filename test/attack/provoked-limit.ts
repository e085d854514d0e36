import { setTimeout as delay } from 'node:timers/promises'
import { type Answer, send, signUp } from '../support/client.ts'
import type { Outcome, Scenario } from './scenario.ts'

const ATTACKERS = 6
const REQUESTS_EACH = 5

/** Longest that one answer to a caller may close an API for everybody, seconds. */
const CLOSED_SECONDS_MAX = 60

/** A value of a caller makes an upstream answer that it limits the gateway for an hour. */
export const provokedLimit: Scenario = {
  name: 'provoked-limit',
  claim:
    'a 429 for an hour to an undeclared parameter of one caller limits nobody else, and a 429 to a declared value limits everybody for a minute',
  slugs: ['dictionary'],
  run: async (gateway, seconds, upstream): Promise<Outcome> => {
    let hasLimited = false
    upstream?.play('dictionary', ({ url }, response) => {
      const isFirstPoison = url.includes('poison') && !hasLimited
      if (isFirstPoison) hasLimited = true
      if (isFirstPoison || url.includes('ensemble='))
        return void response.writeHead(429, { 'retry-after': '3600' }).end()
      return [{ word: 'word', meanings: [{ partOfSpeech: 'noun', definitions: [{ definition: 'what is said' }] }] }]
    })
    const attackers = await Promise.all(Array.from({ length: ATTACKERS }, () => signUp(gateway)))
    const other = await signUp(gateway)
    let words = 0
    const call = ({ live }: { live: string }, word: string, more = ''): Promise<Answer> => {
      words += 1
      return send(gateway, `/v1/call/dictionary/define?word=${word}${words}${more}`, { key: live })
    }
    let served = 0
    for (let round = 0; round < REQUESTS_EACH; round += 1) {
      await Promise.all(attackers.map((attacker) => call(attacker, 'word', `&ensemble=${round}`)))
      if ((await call(other, 'word')).status === 200) served += 1
    }
    const sent = upstream?.arrivalsOf('dictionary').filter(({ url }) => url.includes('ensemble=')).length ?? 0

    const [attacker = other] = attackers
    await call(attacker, 'poison')
    const closedAt = performance.now()
    let answer = await call(other, 'word')
    const saidSeconds = answer.status === 200 ? 0 : Number(answer.headers.get('retry-after'))
    // The long form waits until the API is open again, or until it is certain that the API stays
    // closed.
    const endsAt = closedAt + (seconds >= 10 ? 1_000 * (CLOSED_SECONDS_MAX + 10) : 0)
    while (answer.status !== 200 && performance.now() < endsAt) {
      await delay(1_000)
      answer = await call(other, 'word')
    }
    const isOpenAgain = answer.status === 200 || seconds < 10
    const closedSeconds = Math.round((performance.now() - closedAt) / 1_000)
    return {
      // A probe succeeds, and lets each account try once again. No other probe follows for five
      // minutes.
      isPassed:
        served === REQUESTS_EACH &&
        sent <= 2 * ATTACKERS &&
        hasLimited &&
        saidSeconds <= CLOSED_SECONDS_MAX &&
        isOpenAgain,
      figures: {
        'requests with undeclared parameters': ATTACKERS * REQUESTS_EACH,
        'of them sent': sent,
        'calls of others meanwhile': REQUESTS_EACH,
        served,
        'Retry-After for others after the declared value': saidSeconds,
        'seconds until they were served': answer.status === 200 ? closedSeconds : `not in ${closedSeconds}`,
      },
    }
  },
}
