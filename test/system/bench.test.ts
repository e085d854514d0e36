import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { judge, median, type Rounds, spreadOf } from '../bench/judge.ts'
import { readWrk } from '../bench/load.ts'
import type { Measurement } from '../bench/measure.ts'
import type { Scenario } from '../bench/scenario.ts'

const WRK = `Running 2s test @ http://127.0.0.1:9/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     4.20ms    1.11ms  30.02ms   90.11%
    Req/Sec    15.17k     1.02k   16.90k    70.00%
  Latency Distribution
     50%  500.00us
     75%    4.51ms
     90%    5.20ms
     99%    1.20s
  30218 requests in 2.01s, 34.12MB read
`

function measurement(cpuSum: number, callsPerSecond: number): Measurement {
  const cpu = { web: cpuSum, worker: 0, redis: 0, sum: cpuSum }
  const latency = { p50Ms: 1, p99Ms: 2 }
  const counted = { wirePerCall: 9, commandsPerCall: 70, footprints: [], written: undefined }
  return { calls: 100, callsPerSecond, ...latency, failures: {}, cpu, ...counted }
}

function scenario(bounds: Scenario['bounds']): Scenario {
  return { name: 'n', about: 'a', play: { bodyBytes: 1, delayMs: 0 }, connections: 1, bounds }
}

describe('the benchmark', () => {
  it('the benchmark reads what wrk prints', () => {
    const { calls, callsPerSecond, p50Ms, p99Ms, failures } = readWrk(WRK)
    assert.deepEqual([calls, Math.round(callsPerSecond), p50Ms, p99Ms, failures], [30218, 15034, 0.5, 1_200, {}])
  })

  it('the benchmark counts answers other than 2xx and broken connections in wrk as failures', () => {
    const text = `${WRK}  Non-2xx or 3xx responses: 18\n  Socket errors: connect 0, read 3, write 0, timeout 1\n`
    const { calls, failures } = readWrk(text)
    assert.equal(calls, 30200)
    assert.deepEqual(failures, { 'not 2xx': 18, 'connect 0, read 3, write 0, timeout 1': 1 })
  })

  it('the benchmark judges by the median of the ratios within each round', () => {
    const rounds: Rounds = {
      direct: [measurement(1, 1), measurement(1.1, 1), measurement(1.2, 1)],
      naive: [measurement(2, 1), measurement(8, 1), measurement(4, 1)],
      gateway: [measurement(3, 1), measurement(4, 1), measurement(8, 1)],
    }
    const [first] = judge(scenario([{ what: 'w', figure: 'cpu', against: 'naive', max: 1.5 }]), rounds)
    assert.deepEqual(first, { what: 'w', value: 1.5, bound: '<= 1.5', verdict: 'held' })
    const [second] = judge(scenario([{ what: 'w', figure: 'cpu', against: 'naive', max: 1.4 }]), rounds)
    assert.equal(second?.verdict, 'exceeded')
  })

  it('the benchmark refuses to judge if the base spreads by more than 25 %, but for counts', () => {
    const rounds: Rounds = {
      direct: [measurement(1, 1), measurement(1.3, 1), measurement(1, 1)],
      naive: [measurement(1, 1), measurement(1, 1), measurement(1, 1)],
      gateway: [measurement(9, 1), measurement(9, 1), measurement(9, 1)],
    }
    assert.ok(spreadOf(rounds) > 0.25)
    const verdicts = judge(
      scenario([
        { what: 'ratio', figure: 'cpu', against: 'direct', max: 1 },
        { what: 'count', figure: 'wirePerCall', max: 1 },
      ]),
      rounds,
    ).map(({ verdict }) => verdict)
    assert.deepEqual(verdicts, ['not judged', 'exceeded'])
  })

  it('the benchmark takes the middle figure, or the mean of the two middle figures', () => {
    assert.equal(median([3, 1, 2]), 2)
    assert.equal(median([4, 1, 2, 3]), 2.5)
  })
})
