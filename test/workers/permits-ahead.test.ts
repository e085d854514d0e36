import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { PermitId } from '../../src/caps/replies.ts'
import { PermitsAhead } from '../../workers/permits/permits-ahead.ts'

it('permits ahead go back at once, without a warning of Node, if their poll took longer than they may wait', async () => {
  const warnings: string[] = []
  const note = ({ name }: Error): number => warnings.push(name)
  process.on('warning', note)
  const { promise: returned, resolve } = Promise.withResolvers<PermitId[]>()
  const late: PermitId[] = ['late']
  new PermitsAhead(1, resolve).keep(late, { usableUntil: performance.now() - 1_000, mayBeUsed: () => true })
  assert.deepEqual(await returned, ['late'])
  process.off('warning', note)
  assert.ok(!warnings.includes('TimeoutNegativeWarning'))
})
