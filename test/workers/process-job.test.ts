import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SHARED_BUCKET, waitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { processCallJob } from '../../workers/jobs/process-job.ts'
import { until } from '../support/gateway.ts'
import { openWorkerParts } from '../support/worker-parts.ts'

test('a call without a ticket whose caller has left gives up the place for which its lost worker joined the queue', async (t) => {
  const { deps, cap, callOf } = await openWorkerParts(t)
  const call = callOf({ timeMs: 300_000 })
  const { slug, deadline } = call
  const jobId = await deps.queues.enqueue({ call, mayShareJob: false })
  const entry = waitQueueEntry(call, { bucket: SHARED_BUCKET })
  assert.ok('tag' in (await cap.joinWaitQueue(entry, deadline)))
  assert.equal((await cap.read()).ahead, 1)
  const job = (await deps.queues.of(slug).getJob(jobId)) ?? assert.fail()
  // Another worker took the job and was lost.
  job.stalledCounter = 1
  await processCallJob(deps, job, new AbortController().signal)
  await until(async () => (await cap.read()).ahead === 0)
})
