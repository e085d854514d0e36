import type { Job } from 'bullmq'
import { CALL_JOB } from '../../src/queue/call-queue.ts'
import type { Telemetry } from '../../src/telemetry/telemetry.ts'

/** The jobs of one worker process as they run: how many, and the trace of each call. */
export class ObservedJobs {
  #active = 0

  /** Jobs under way. */
  get active(): number {
    return this.#active
  }

  /** Runs a job. A call's span joins the trace that its HTTP request began, and its attempts join the job's. */
  async run(telemetry: Telemetry, job: Job, process: () => Promise<null>): Promise<null> {
    this.#active += 1
    const traceparent: unknown = job.name === CALL_JOB ? Object(job.data).traceparent : undefined
    const span =
      typeof traceparent === 'string'
        ? telemetry.tracing.start('job', {
            kind: 'consumer',
            parent: traceparent,
            attributes: { 'messaging.system': 'bullmq', 'messaging.destination.name': job.queueName },
          })
        : undefined
    // In this process alone: the job in Redis keeps the context of its request.
    if (span?.traceparent) job.data.traceparent = span.traceparent
    try {
      const result = await process()
      span?.end()
      return result
    } catch (error) {
      span?.end('job failed')
      throw error
    } finally {
      this.#active -= 1
    }
  }
}
