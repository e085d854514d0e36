import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CALLER_LEFT } from '../../workers/errors/abort-reasons.ts'
import { RunningCalls } from '../../workers/jobs/running-calls.ts'

describe('the calls that run in a worker', () => {
  it('the calls that run in a worker are cancelled one by one', () => {
    const running = new RunningCalls()
    const ended: string[] = []
    running.onCancel('a', () => ended.push('a'))
    const unfollow = running.onCancel('b', () => ended.push('b'))
    running.cancel('a')
    assert.deepEqual(ended, ['a'])
    unfollow()
    running.cancel('b')
    assert.deepEqual(ended, ['a'])
    assert.equal(running.calls, 1)
  })

  it('the calls that run in a worker are cancelled as they begin when the cancel came before their job', () => {
    const running = new RunningCalls()
    running.cancel('late')
    let reason: unknown
    running.onCancel('late', (why) => {
      reason = why
    })
    assert.equal(reason, CALLER_LEFT)
  })

  it('the calls that run in a worker are counted with the jobs that hold them', async () => {
    const running = new RunningCalls()
    await assert.rejects(
      running.runJob(async () => {
        assert.equal(running.jobs, 1)
        throw new Error('job failed')
      }),
    )
    assert.equal(running.jobs, 0)
  })
})
