import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toLastHour } from '../../src/fleet/last-hour.ts'
import { overviewAnswer } from '../../src/fleet/overview-answer.ts'
import type { Snapshot } from '../../src/fleet/snapshot.ts'

test('the calls of the last full minute are those of all APIs, of one too that the catalog does not have any more', () => {
  const minute = (at: number, calls: [string, number][]) => ({
    ...{ at, calls: new Map(calls), queue: new Map(), upstream: new Map(), accounts: [] },
  })
  const full = minute(60_000, [['removed|OK', 3], ['removed|UPSTREAM_ERROR', 1]]) // biome-ignore format: one row
  const snapshot: Snapshot = {
    ...{ at: 150_000, problems: [], upstreams: [], errors: null, accounts: null, processes: null, unready: [] },
    ...{
      stores: { redis: null, postgres: null },
      usageFailingSince: null,
      unapproved: null,
      changes: null,
      audit: null,
    },
    lastHour: toLastHour([minute(0, [['weather|OK', 9]]), full, minute(120_000, [['weather|OK', 7]])]),
  }
  assert.equal(overviewAnswer(snapshot).callsLastMinute, 4)
  assert.equal(overviewAnswer({ ...snapshot, lastHour: null }).callsLastMinute, null)
})
