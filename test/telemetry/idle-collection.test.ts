import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collectGarbage } from '../../src/telemetry/idle-collection.ts'

test('a garbage collection while the process is idle returns unused memory to the system', async () => {
  // Other tests of this process left garbage of their own.
  await collectGarbage()
  const { heapTotal } = process.memoryUsage()
  let rows: string[][] | undefined = Array.from({ length: 20_000 }, (_, row) =>
    Array.from({ length: 50 }, (_, column) => `${row} ${column}`),
  )
  assert.equal(rows.length, 20_000)
  const grownBytes = process.memoryUsage().heapTotal - heapTotal
  assert.ok(grownBytes > 20_000_000, `${grownBytes}`)
  rows = undefined
  await collectGarbage()
  const keptBytes = process.memoryUsage().heapTotal - heapTotal
  assert.ok(keptBytes < grownBytes / 2, `${keptBytes} of ${grownBytes} bytes are kept`)
})
