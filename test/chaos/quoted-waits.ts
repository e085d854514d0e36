import { setTimeout as delay } from 'node:timers/promises'
import { atLeast, exactly } from '../soak/scenario.ts'
import { signUp } from '../support/client.ts'
import type { CallRecord } from './load.ts'
import type { Rig } from './rig.ts'
import type { ChaosScenario } from './scenario.ts'

const SECONDS = 240
const BUSY_LOOPS = 6
const OTHERS = 7

/** How long the upstream takes to answer, milliseconds. */
const ANSWER_MS = 15

/**
 * Longest time that a refused caller waits before its next call, milliseconds, whatever Retry-After
 * says.
 */
const AGAIN_MS_MAX = 5_000

/**
 * An account with six loops beside seven accounts that come and go, at a cap of ten a minute. Every
 * accepted call must meet its deadline.
 */
export const quotedWaits: ChaosScenario = {
  name: 'quoted-waits',
  about: `an account with ${BUSY_LOOPS} loops of calls beside ${OTHERS} accounts that come and go, at a cap of 10 a minute, for ${SECONDS} seconds`,
  seconds: SECONDS,
  perSecond: {},
  environment: { UPSTREAM_WEATHER_CAPS: 'concurrency=4,10/60' },
  offer: async (rig) => {
    rig.upstream.behave({ flow: 'weather', kind: 'ok', delayMs: ANSWER_MS })
    const endsAt = performance.now() + SECONDS * 1_000
    const busy = await signUp(rig.gateway)
    rig.accounts.push(busy)
    const records: CallRecord[] = []
    const loops = Array.from({ length: BUSY_LOOPS }, () => callAgain(rig, { key: busy.live, endsAt, records }))
    for (let index = 0; index < OTHERS; index += 1) {
      const other = await signUp(rig.gateway)
      rig.accounts.push(other)
      loops.push(callAgain(rig, { key: other.live, endsAt, records, pauseMsMax: 30_000 }))
    }
    await Promise.all(loops)
    return records
  },
  faults: async () => undefined,
  allow: {},
  claims: (records) => [
    exactly(
      'accepted calls that missed their deadline',
      records.filter(({ outcome }) => outcome === '503 DEADLINE_EXCEEDED').length,
      0,
    ),
    // If a slot of the cap comes too late for its call, the next call gets it, and the caller reads
    // the refusal of the cap.
    exactly(
      'calls whose slot was used up by an attempt without time for an answer',
      records.filter(({ outcome }) => outcome === '502 UPSTREAM_TIMEOUT').length,
      0,
    ),
    // Ten a minute, less the calls of the warm-up in the first window.
    atLeast('calls answered', records.filter(({ outcome }) => outcome === '200').length, 30),
  ],
}

interface Caller {
  key: string
  endsAt: number
  records: CallRecord[]
  /** Longest pause between two calls, milliseconds. */
  pauseMsMax?: number
}

async function callAgain(rig: Rig, { key, endsAt, records, pauseMsMax = 0 }: Caller): Promise<void> {
  while (performance.now() < endsAt) {
    await delay(rig.random() * pauseMsMax)
    const record = await rig.call(key)
    records.push(record)
    const againMs = Math.min((record.retryAfterSeconds ?? 0) * 1_000, AGAIN_MS_MAX)
    await delay(againMs)
  }
}
