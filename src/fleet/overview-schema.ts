import Type, { type Static } from 'typebox'
import { nullable } from '../catalog/json.ts'
import type { HealthRow, QueueRow, Snapshot, UpstreamRow } from './snapshot.ts'

const DateTime = Type.String({ format: 'date-time' })
const Count = Type.Integer({ minimum: 0 })
const Failure = Type.Object({
  at: DateTime,
  code: Type.String(),
  words: Type.String({ description: 'HTTP 500 in 87 ms; DNS: no such host' }),
  network: Type.Boolean({ description: 'Whether the name look-up, the connection or the handshake failed' }),
})

const UpstreamOverview = Type.Object({
  slug: Type.String(),
  enabled: Type.Boolean(),
  switchedOff: Type.Boolean({ description: 'Whether an operator has disabled the API, so that nobody can call it' }),
  paused: nullable(Type.Enum(['hold', 'refuse'])),
  queue: nullable(
    Type.Object({
      waiting: Count,
      active: Count,
      delayed: Count,
      failed: Count,
      oldestMs: Type.Number({ description: 'How long the oldest call has waited' }),
      paused: Type.Boolean(),
    }),
  ),
  caps: nullable(
    Type.Object({
      concurrency: Type.Integer(),
      underWay: Count,
      nextSlotMs: Type.Integer({ description: 'When the next request may start, milliseconds from now' }),
      limitedUntil: Type.Union([DateTime, Type.Null()], {
        description: 'Time until which the source limits the gateway; null: it does not',
      }),
      rates: Type.Array(Type.Object({ max: Type.Integer(), seconds: Type.Number(), left: Type.Integer() })),
    }),
  ),
  health: nullable(
    Type.Object({
      status: Type.Enum(['Healthy', 'Degraded', 'Down']),
      score: Type.Integer(),
      since: nullable(DateTime),
      cause: nullable(Type.String()),
      checkedAt: nullable(DateTime),
      lastFailure: Type.Union([Failure, Type.Null()], {
        description: 'The last attempt, if it failed; null: the last attempt succeeded, or there was no attempt',
      }),
      lastOkAt: nullable(DateTime),
    }),
  ),
  lackedContact: nullable(
    Type.String({ description: 'What the source allows in addition if CONTACT is set; null: nothing' }),
  ),
  recent: nullable(
    Type.Object(
      { answered: Count, refused: Count, failed: Count, upstreamP95Ms: nullable(Type.Number()) },
      { description: 'What callers got in the last five minutes: answers, 4xx, 5xx' },
    ),
  ),
  lastMinute: nullable(
    Type.Record(Type.String(), Type.Integer(), { description: 'Calls of the last sixty seconds by code' }),
  ),
})

/** The state of the fleet. Null means "not known", because a store did not answer. */
export const OverviewAnswer = Type.Object({
  at: DateTime,
  headline: Type.Object(
    {
      state: Type.String({ description: 'Down, Degraded, Healthy or Unknown' }),
      label: Type.String(),
      text: Type.String(),
    },
    { description: 'The state of the whole service in one sentence' },
  ),
  problems: Type.Array(
    Type.Object({
      rank: Type.Integer({ description: '0: callers get errors now … 3: for information only' }),
      label: Type.String(),
      slug: nullable(Type.String()),
      text: Type.String(),
      callers: Type.String({ description: 'What callers get while the problem persists' }),
      todo: Type.String(),
      runbook: Type.String({ description: 'Anchor of the page /runbooks of the console' }),
      endedAt: Type.Union([DateTime, Type.Null()], {
        description: 'When a problem that is over was last seen; null: the problem persists',
      }),
    }),
  ),
  callsLastMinute: nullable(
    Type.Integer({
      description: 'Calls of the last sixty seconds, including calls of APIs that have left the catalog',
    }),
  ),
  upstreams: Type.Array(UpstreamOverview),
  processes: nullable(
    Type.Array(
      Type.Object({
        kind: Type.String(),
        host: Type.String(),
        pid: Type.Integer(),
        startedAt: DateTime,
        busy: Type.Number({ description: 'Share of the time in which the event loop of the process was busy, 0 to 1' }),
        lagMs: Type.Number(),
        memoryBytes: Type.Integer(),
        inFlight: Type.Integer(),
        serves: nullable(Type.Array(Type.String(), { description: 'APIs that the worker serves; null: all' })),
      }),
    ),
  ),
  accounts: nullable(
    Type.Array(
      Type.Object(
        {
          id: Type.String(),
          email: nullable(Type.String()),
          calls: Count,
          limited: Count,
          refused: Count,
          failed: Count,
        },
        { description: 'The accounts with most calls in the last hour: 429, other 4xx, 5xx' },
      ),
    ),
  ),
  stores: Type.Object({
    redis: nullable(Type.Object({ usedBytes: Type.Number(), maxBytes: Type.Number(), latencyMs: Type.Number() })),
    postgres: nullable(Type.Object({ bytes: Type.Number(), connections: Type.Integer(), latencyMs: Type.Number() })),
  }),
})

/** Turns a snapshot into the answer of the operator API. */
export function overviewAnswer({
  at,
  headline,
  problems,
  upstreams,
  lastMinute,
  processes,
  accounts,
  stores,
}: Snapshot): Static<typeof OverviewAnswer> {
  return {
    at: toText(at),
    headline,
    problems: problems.map((problem) => ({ ...problem, endedAt: orNull(problem.endedAt) })),
    callsLastMinute: lastMinute && lastMinute.answered + lastMinute.refused + lastMinute.failed,
    upstreams: upstreams.map(upstreamOverview),
    processes:
      processes?.map(({ startedAt, upMs: _, apis: __, dropped: ___, refused: ____, ...rest }) => ({
        ...rest,
        startedAt: toText(startedAt),
      })) ?? null,
    accounts,
    stores,
  }
}

function upstreamOverview(row: UpstreamRow) {
  const { slug, enabled, isSwitchedOff, paused, health, queue, cap, lackedContact, recent } = row
  return {
    slug,
    enabled,
    switchedOff: isSwitchedOff,
    paused,
    queue: queue && queueOverview(queue),
    caps: cap && { ...cap, limitedUntil: orNull(cap.limitedUntil) },
    health: health && healthOverview(health),
    lackedContact,
    recent: recent && {
      answered: recent.answered,
      refused: recent.refused,
      failed: recent.failed,
      upstreamP95Ms: recent.upstreamP95,
    },
    lastMinute: recent?.lastMinute ?? null,
  }
}

function queueOverview({ isPaused, ...counts }: QueueRow) {
  return { ...counts, paused: isPaused }
}

function healthOverview({ status, score, since, cause, checkedAt, lastFailure, lastOkAt }: HealthRow) {
  return {
    status,
    score,
    since: orNull(since),
    cause,
    checkedAt: orNull(checkedAt),
    lastFailure: lastFailure && failureOverview(lastFailure),
    lastOkAt: orNull(lastOkAt),
  }
}

function failureOverview({ at, code, words, isNetwork }: NonNullable<HealthRow['lastFailure']>) {
  return { at: toText(at), code, words, network: isNetwork }
}

function orNull(epochMs: number | null): string | null {
  return epochMs === null ? null : toText(epochMs)
}

function toText(epochMs: number): string {
  return new Date(epochMs).toISOString()
}
