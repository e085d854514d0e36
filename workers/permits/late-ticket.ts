import { refusalOf } from '../../src/caps/refusal.ts'
import type { UpstreamCaps } from '../../src/caps/upstream-caps.ts'
import type { Log } from '../../src/log.ts'
import { type QueueEntry, queueMember } from '../../src/queue/queue-entry.ts'
import type { UpstreamCall } from '../upstream/call-upstream.ts'
import type { Outcome } from '../upstream/outcome.ts'

export interface LateTicketDeps {
  caps: UpstreamCaps
  log: Log
}

/**
 * Runs a call without a ticket: a stored answer was expected and is not there. It joins the wait queue now, behind
 * those that wait already, or is refused.
 */
export async function withTicket(
  { caps, log }: LateTicketDeps,
  upstreamCall: UpstreamCall,
  run: (ticketed: UpstreamCall) => Promise<Outcome>,
): Promise<Outcome> {
  const { api, bucket, call, permit, times } = upstreamCall
  if (call.ticket) return await run(upstreamCall)
  const cap = caps.of(api, bucket)
  const entry: QueueEntry = { ...queueMember(call), weight: call.weight ?? 1, slug: call.slug, bucket }
  const joined = await cap.joinQueue(entry, call.deadline)
  if ('refused' in joined) return refusalOf(joined)
  try {
    return await run({ ...upstreamCall, permit: { ...permit, tag: joined.tag } })
  } finally {
    if (times.attempts === 0) {
      cap
        .leaveQueue(entry)
        .catch((error) => log.debug({ err: error, callId: call.id }, 'failed to leave the wait queue'))
    }
  }
}
