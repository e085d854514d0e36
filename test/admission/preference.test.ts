import assert from 'node:assert/strict'
import { it } from 'node:test'
import { readBatchPreference, readPreference } from '../../src/admission/call-request.ts'

const NONE = { waitMs: undefined, applied: undefined }

it('the wait that Preference-Applied confirms is the wait that is applied, and is never longer than a call may take', () => {
  const read = (prefer: string) => readPreference({ prefer }, 30_000)
  assert.deepEqual(read('wait=5'), { waitMs: 5_000, applied: 'wait=5' })
  assert.deepEqual(read('respond-async, wait="7"'), { waitMs: 7_000, applied: 'wait=7' })
  for (const seconds of ['30', '31', '100', '99999999'])
    assert.deepEqual(read(`wait=${seconds}`), { waitMs: 30_000, applied: 'wait=30' })
  assert.deepEqual(read('respond-async'), { waitMs: 0, applied: 'respond-async' })
  for (const ignored of ['', 'wait=soon', 'wait=-1', `wait=${'9'.repeat(400)}`, 'handling=lenient'])
    assert.deepEqual(read(ignored), NONE, ignored)
  assert.deepEqual(readBatchPreference({ prefer: 'wait=100' }, 55_000), { waitMs: 55_000, applied: 'wait=55' })
  assert.deepEqual(readBatchPreference({ prefer: 'wait=0' }, 55_000), NONE)
})
