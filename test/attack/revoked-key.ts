import { createKey, send, signUp } from '../support/client.ts'
import { until } from '../support/gateway.ts'
import type { Outcome, Scenario } from './scenario.ts'

const CALLS = 10

/** Calls that a Free account may have in flight. */
const IN_FLIGHT = 5

/** A batch whose key is revoked while its first calls are at the upstream. */
export const revokedKey: Scenario = {
  name: 'revoked-key',
  claim: 'a batch sends no request that starts after its key was revoked',
  environment: { UPSTREAM_DICTIONARY_CAPS: 'concurrency=50,1000/1' },
  slugs: ['dictionary'],
  run: async (gateway, _seconds, upstream): Promise<Outcome> => {
    if (!upstream) throw new Error('the scenario needs an upstream')
    const { token } = await signUp(gateway)
    const { key, id } = await createKey(gateway, token)
    const waiting: (() => void)[] = []
    upstream.play('dictionary', () => new Promise((resolve) => waiting.push(() => resolve([]))))
    const sent = () => upstream.arrivalsOf('dictionary').length
    const calls = Array.from({ length: CALLS }, (_, index) => ({
      api: 'dictionary',
      endpoint: '/define',
      parameters: { word: `word${String.fromCharCode(97 + index)}` },
    }))
    const batch = fetch(`${gateway.url}/v1/batch`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ calls }),
    }).then((answer) => answer.text())
    await until(() => sent() === IN_FLIGHT)
    const { status } = await send(gateway, `/v1/keys/${id}`, { method: 'DELETE', token })
    upstream.play('dictionary', () => [])
    for (const answer of waiting) answer()
    const lines = (await batch).split('\n').filter((line) => line.includes('INVALID_API_KEY'))
    return {
      isPassed: status === 204 && sent() === IN_FLIGHT && lines.length === CALLS - IN_FLIGHT,
      figures: { calls: CALLS, 'sent before': IN_FLIGHT, 'sent after': sent() - IN_FLIGHT, refused: lines.length },
    }
  },
}
