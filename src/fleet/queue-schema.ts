import Type, { type Static } from 'typebox'
import { nullable } from '../catalog/json.ts'
import type { QueueView } from './fleet-reader.ts'
import { CALL_STATES, type QueuedCall } from './queue-contents.ts'

const Count = Type.Integer({ minimum: 0 })

/** The calls and other jobs of one API. Null means "not known", because Redis did not answer. */
export const QueueAnswer = Type.Object({
  at: Type.String({ format: 'date-time' }),
  slug: Type.String(),
  workers: nullable(Type.Integer({ minimum: 0, description: 'Workers that serve the API' })),
  calls: nullable(
    Type.Array(
      Type.Object({
        id: Type.String(),
        state: Type.Enum([...CALL_STATES]),
        ahead: nullable(Type.Integer({ minimum: 0, description: 'Calls that get a slot of the cap before this call' })),
        accountId: Type.String(),
        email: nullable(Type.String()),
        endpoint: Type.String(),
        parameters: Type.Record(Type.String(), Type.String(), {
          description: 'Declared parameters of the call; long values are cut',
        }),
        undeclared: Type.Array(Type.String(), {
          description: 'Names of the undeclared parameters, whose values are not shown',
        }),
        mode: Type.Enum(['live', 'test']),
        async: Type.Boolean(),
        ownKey: Type.Boolean({ description: 'Whether the call uses a key of its caller, which has a cap of its own' }),
        ageMs: Count,
        deadlineInMs: Type.Integer({
          description: 'Time until the deadline, milliseconds; negative: the deadline has passed',
        }),
      }),
      { description: 'Calls that are under way first, then the waiting calls in the order in which they will run' },
    ),
  ),
  more: Type.Boolean({ description: 'Whether the queue has more jobs than the answer lists' }),
  otherJobs: nullable(
    Type.Array(
      Type.Object({
        name: Type.String(),
        title: Type.String({ description: 'Kind of the job, in words' }),
        running: Type.Boolean(),
        dueInMs: Count,
      }),
      { description: 'Probes and checks of keys' },
    ),
  ),
  failedJobs: nullable(
    Type.Array(
      Type.Object({
        id: Type.String(),
        name: Type.String(),
        at: Type.String({ format: 'date-time' }),
        reason: Type.String(),
      }),
      {
        description:
          'Jobs that a defect of the gateway ended; calls that fail get an answer and are not among these jobs',
      },
    ),
  ),
})

/** Turns a queue into the answer of the operator API. */
export function queueAnswer({ at, row, workers, contents }: QueueView): Static<typeof QueueAnswer> {
  return {
    at: new Date(at).toISOString(),
    slug: row.slug,
    workers,
    calls: contents?.calls.map(callAnswer) ?? null,
    more: contents?.isCut ?? false,
    otherJobs:
      contents?.others.map(({ name, title, isRunning, dueInMs }) => ({
        name,
        title,
        running: isRunning,
        dueInMs: Math.round(dueInMs),
      })) ?? null,
    failedJobs: contents?.failed.map((job) => ({ ...job, at: new Date(job.at).toISOString() })) ?? null,
  }
}

function callAnswer(call: QueuedCall) {
  return {
    id: call.id,
    state: call.state,
    ahead: call.ahead,
    accountId: call.accountId,
    email: call.email,
    endpoint: call.endpoint,
    parameters: Object.fromEntries(call.parameters),
    undeclared: call.undeclared,
    mode: call.mode,
    async: call.isAsync,
    ownKey: call.hasOwnKey,
    ageMs: Math.round(call.waitedMs),
    deadlineInMs: Math.round(call.leftMs),
  }
}
