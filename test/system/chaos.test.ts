import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { runScenario } from '../chaos/run-scenario.ts'
import { SHORT } from '../chaos/scenarios.ts'

describe('the law of conservation', () => {
  it('the law of conservation holds while a worker is killed, both stores reset their connections and a node is replaced', async (t) => {
    const claims = await runScenario(SHORT, { seed: 1, say: (line) => t.diagnostic(line) })
    assert.ok(claims.length >= 7)
    assert.deepEqual(
      claims.filter(({ isHeld }) => !isHeld),
      [],
    )
  })
})
