import type { CallJob } from '../../src/queue/call-job.ts'
import type { Telemetry } from '../../src/telemetry/telemetry.ts'

/** Joins the trace of the HTTP request; the call's attempts join the span. */
export async function traceCall<T>(
  { tracing }: Pick<Telemetry, 'tracing'>,
  call: CallJob,
  process: (call: CallJob) => Promise<T>,
): Promise<T> {
  if (!tracing || call.traceparent === undefined) return await process(call)
  const span = tracing.start('job', {
    kind: 'consumer',
    parent: call.traceparent,
    attributes: {
      'messaging.system': 'bullmq',
      'messaging.destination.name': call.slug,
      'messaging.operation.type': 'process',
      'messaging.message.id': call.id,
    },
  })
  try {
    const result = await process(span.traceparent ? { ...call, traceparent: span.traceparent } : call)
    span.end()
    return result
  } catch (error) {
    span.end('job failed')
    throw error
  }
}
