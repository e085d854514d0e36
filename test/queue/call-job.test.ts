import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  type CallJob,
  LaterVersionError,
  parseAnswerable,
  parseCalls,
  SHARED_JOB_CALLS_MAX,
  toJobData,
} from '../../src/queue/call-job.ts'

function call(number: number): CallJob {
  return {
    v: 1,
    id: `call_${String(number).padStart(32, '0')}`,
    accountId: 'a',
    mode: 'live',
    slug: 'random-facts',
    endpoint: '/random',
    parameters: {},
    extra: [],
    raw: false,
    isAsync: false,
    replyTo: 'agw:{reply-x}',
    limitsAcquiredAt: 1,
    admissionEndedAt: 2,
    deadline: 3,
  }
}

/** As it is in Redis. */
function stored(number: number) {
  const { limitsAcquiredAt, admissionEndedAt, ...rest } = call(number)
  return { ...rest, enqueuedAt: limitsAcquiredAt, admittedAt: admissionEndedAt }
}

describe('the data of a call job', () => {
  it('the data of a call job is version 1 for one call, so that workers of the version before read it', () => {
    const data = toJobData([call(1)])
    assert.deepEqual(data, stored(1))
    assert.deepEqual(parseCalls(data), [call(1)])
  })

  it('the data of a call job stores times, ticket and bucket under the names that workers of earlier versions read', () => {
    const queued: CallJob = { ...call(1), weight: 2, ticket: { tag: 7.5 }, providerKey: { id: 'k', bucket: 'own' } }
    const data = JSON.parse(JSON.stringify(toJobData([queued])))
    const asStored = { place: { tag: 7.5, weight: 2 }, providerKey: { id: 'k', scope: 'own' } }
    assert.deepEqual(data, { ...stored(1), weight: 2, ...asStored })
    assert.deepEqual(parseCalls(data), [queued])
    assert.deepEqual(parseCalls({ v: 2, calls: [data, stored(2)] }), [queued, call(2)])
  })

  it('the data of a call job is version 2 for several calls, which come back in order', () => {
    const calls = Array.from({ length: SHARED_JOB_CALLS_MAX }, (_, number) => call(number))
    const data = JSON.parse(JSON.stringify(toJobData(calls)))
    assert.equal(data.v, 2)
    assert.deepEqual(parseCalls(data), calls)
  })

  it('the data of a call job is refused when it is of no known version, or holds more calls than a job may', () => {
    const calls = Array.from({ length: SHARED_JOB_CALLS_MAX + 1 }, (_, number) => stored(number))
    for (const data of [{ ...stored(1), v: 3 }, { v: 2, calls }, { v: 2, calls: [] }, { v: 2, calls: [{}] }, null]) {
      assert.throws(() => parseCalls(data), /do not fit version/)
    }
  })

  it('the data of a call job of a later version still names who waits for the answer, and invalid data names nobody', () => {
    const later = { ...stored(1), v: 3, providerKey: 'changed', place: 7 }
    assert.throws(() => parseCalls(later), LaterVersionError)
    const [known] = parseAnswerable(later)
    assert.deepEqual([known?.id, known?.replyTo, known?.deadline], [call(1).id, call(1).replyTo, call(1).deadline])
    assert.deepEqual(
      parseAnswerable({ v: 4, calls: [stored(2), { id: 'no call' }, stored(3)] }).map(({ id }) => id),
      [call(2).id, call(3).id],
    )
    for (const data of [null, 'text', {}, { v: 3 }]) assert.deepEqual(parseAnswerable(data), [])
  })
})
