import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Job } from 'bullmq'
import { CALL_JOB } from '../../src/queue/call-queue.ts'
import { CALLER_LEFT, DEADLINE_PASSED } from '../../workers/errors/abort-reasons.ts'
import { processorOf } from '../../workers/jobs/process-job.ts'
import { RunningCalls } from '../../workers/jobs/running-calls.ts'
import type { WorkerDeps } from '../../workers/jobs/worker-deps.ts'

const options = () => ({ forMs: 1_000, cancelled: new AbortController().signal })

describe('the calls that run in a worker', () => {
  it('a worker can cancel each of its running calls separately', () => {
    const running = new RunningCalls()
    const [a, b] = [running.begin('a', options()), running.begin('b', options())]
    running.cancel('a')
    assert.equal(a.signal.reason, CALLER_LEFT)
    b.end()
    running.cancel('b')
    assert.equal(b.signal.aborted, false)
    assert.equal(running.calls, 1)
    a.end()
    assert.equal(running.calls, 0)
  })

  it('a run ends when its job is cancelled, and at its deadline, but not after it has ended', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const running = new RunningCalls()
    const job = new AbortController()
    const begin = (id: string) => running.begin(id, { forMs: 1_000, cancelled: job.signal })
    const [first, second] = [begin('first'), begin('second')]
    job.abort('lock lost')
    first.end()
    assert.equal(first.signal.reason, 'lock lost')
    assert.equal(begin('late').signal.reason, 'lock lost')
    const [over, ended] = [running.begin('over', options()), running.begin('ended', options())]
    ended.end()
    t.mock.timers.tick(1_000)
    assert.deepEqual([over.signal.reason, ended.signal.aborted], [DEADLINE_PASSED, false])
    second.end()
  })

  it('the end of a first run leaves the second run of the same call, which can be cancelled', () => {
    const running = new RunningCalls()
    const [first, second] = [running.begin('a', options()), running.begin('a', options())]
    first.end()
    running.cancel('a')
    assert.equal(second.signal.reason, CALLER_LEFT)
    second.end()
  })

  it('a call is cancelled as it begins if the cancellation came before its job', () => {
    const running = new RunningCalls()
    running.cancel('late')
    const { signal, end } = running.begin('late', options())
    assert.equal(signal.reason, CALLER_LEFT)
    end()
  })

  it('a worker counts its running calls and the jobs that hold them', async () => {
    const running = new RunningCalls()
    const job = {
      name: CALL_JOB,
      get data(): never {
        assert.equal(running.jobs, 1)
        throw new Error('job failed')
      },
    }
    await assert.rejects(async () => await processorOf({ running } as WorkerDeps)(job as unknown as Job), /job failed/)
    assert.equal(running.jobs, 0)
  })
})
