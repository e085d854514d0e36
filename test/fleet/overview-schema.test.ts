import assert from 'node:assert/strict'
import { test } from 'node:test'
import { overviewAnswer } from '../../src/fleet/overview-schema.ts'
import type { Snapshot } from '../../src/fleet/snapshot.ts'

test('the overview counts the calls of the last sixty seconds, and not as zero while they are not known', () => {
  const snapshot: Snapshot = {
    ...{ at: 150_000, problems: [], upstreams: [], errors: null, accounts: null, processes: null, unready: [] },
    ...{ headline: { state: 'Healthy', label: 'Healthy', text: '' }, lastHour: null },
    ...{
      stores: { redis: null, postgres: null },
      usageFailingSince: null,
      unapproved: null,
      sealedEarlier: null,
      changes: null,
      audit: null,
    },
    lastMinute: { answered: 3, refused: 0, failed: 1 },
  }
  assert.equal(overviewAnswer(snapshot).callsLastMinute, 4)
  assert.equal(overviewAnswer({ ...snapshot, lastMinute: null }).callsLastMinute, null)
})
