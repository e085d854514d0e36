import assert from 'node:assert/strict'
import { it, mock } from 'node:test'
import { onHanging } from '../../workers/upstream/hanging.ts'

for (const limitMs of [2_500, 3_000, 9_000]) {
  it(`an attempt that may take ${limitMs} ms counts as hanging from then on, not before`, (t) => {
    mock.timers.enable({ apis: ['setTimeout'] })
    t.after(() => mock.timers.reset())
    let calls = 0
    onHanging({ firstMs: 2_500, limitMs: () => limitMs }, () => {
      calls += 1
    })
    for (let ms = 0; ms < limitMs - 1; ms += 1) mock.timers.tick(1)
    assert.equal(calls, 0)
    mock.timers.tick(1)
    assert.equal(calls, 1)
  })
}
