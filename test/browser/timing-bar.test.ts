import assert from 'node:assert/strict'
import { it } from 'node:test'
import { durationWords, timingBar, timingOf } from '../../src/browser/timing-bar.js'

const CALL = { admissionMs: 5, queueMs: 10, permitMs: 35, upstreamMs: 40, totalMs: 100, quotedMs: 60 }

it('the parts of a call fill its bar, with the rest at the end, and the forecast wait is marked', () => {
  const { parts, forecastX } = timingOf(CALL)
  assert.deepEqual(
    parts.map(({ name, x, width }) => [name, Math.round(x), Math.round(width)]),
    [
      ['admission', 0, 50],
      ['queue', 50, 100],
      ['permit', 150, 350],
      ['upstream', 500, 400],
      ['rest', 900, 100],
    ],
  )
  assert.equal(forecastX, 650)
  const text = timingBar(CALL)
  assert.match(text, /Permit 35 ms, Upstream 40 ms, Rest 10 ms/)
  assert.match(text, /forecast wait was 60 ms, the dashed line; the call waited 45 ms/)
})

it('a forecast that was longer than the call makes room for itself, and parts that exceed the whole still fit', () => {
  const late = timingOf({ ...CALL, quotedMs: 195 })
  assert.deepEqual([late.forecastX, late.parts[3]?.width], [1_000, 200])
  const exceeding = timingOf({ ...CALL, totalMs: 80, quotedMs: 0 })
  const last = exceeding.parts.at(-1) ?? assert.fail()
  assert.deepEqual([last.width, last.x], [0, 1_000])
})

it('the bar of a refused call has no forecast, and shows what its caller read', () => {
  const refused = { admissionMs: 2, queueMs: null, permitMs: null, upstreamMs: null, totalMs: 2.5, quotedMs: 7_000 }
  assert.equal(timingOf(refused).forecastX, undefined)
  const text = timingBar(refused)
  assert.match(text, /quoted a wait of 7\.0 s/)
  assert.match(text, /Admission 2\.0 ms, Rest 0\.5 ms"/)
  assert.doesNotMatch(text, /Queue|Permit|Upstream/)
})

it('durations have the unit in which they are read best', () => {
  assert.deepEqual([0, 3.44, 12.6, 2_540, 61_000].map(durationWords), ['0.0 ms', '3.4 ms', '13 ms', '2.5 s', '61 s'])
})
