import { figureOf, type Judgement, median, type Rounds, ratioOf, spreadOf } from './judge.ts'
import type { Measurement } from './measure.ts'
import type { Figure, Scenario } from './scenario.ts'
import { BEFORE } from './subject.ts'

const COLUMNS: [string, (measurement: Measurement) => number, number][] = [
  ['calls/s', (it) => it.callsPerSecond, 0],
  ['p50 ms', (it) => it.p50Ms, 2],
  ['p99 ms', (it) => it.p99Ms, 1],
  ['web', (it) => it.cpu.web, 3],
  ['worker', (it) => it.cpu.worker, 3],
  ['redis', (it) => it.cpu.redis, 3],
  ['sum s/1k', (it) => figureOf(it, 'cpu'), 3],
  ['commands', (it) => it.wirePerCall, 1],
  ['with Lua', (it) => it.commandsPerCall, 1],
]

/** The lines of a scenario: its medians, and the judgement of each bound. */
export function scenarioLines({ name, about, sizes }: Scenario, rounds: Rounds, judgements: Judgement[]): string[] {
  const header = ['', ...COLUMNS.map(([title]) => title)]
  const rows = Object.entries(rounds).map(([subject, measurements]) => [
    subject,
    ...COLUMNS.map(([, read, digits]) => median(measurements.map(read)).toFixed(digits)),
  ])
  const spread = Math.round(spreadOf(rounds) * 100)
  return [
    '',
    `${name}: ${about} (CPU in seconds per 1 000 calls; spread of the base ${spread} %)`,
    ...align([header, ...rows]),
    ...beforeLine(rounds),
    ...(sizes ? align(['size process number core% MB redis postgres'.split(' '), ...footprintRows(rounds)]) : []),
    ...judgements.map(({ what, value, bound, verdict }) => `  ${what}: ${value.toFixed(2)} (${bound}) ${verdict}`),
  ]
}

/**
 * What a process of each kind needs in each size: share of a core, memory, connections. In place of
 * memory, Redis has its commands a second, and Postgres what it commits and writes.
 */
function footprintRows(rounds: Rounds): string[][] {
  return Object.entries(rounds).flatMap(([size, measurements]) => {
    const of = (read: (measurement: Measurement) => number) => median(measurements.map(read))
    const kinds = measurements.at(-1)?.footprints ?? []
    return [
      ...kinds.map(({ kind, processes }, index) => {
        const each = (figure: 'cpuPercent' | 'megabytes' | 'redisConnections' | 'postgresConnections') =>
          of(({ footprints }) => footprints[index]?.[figure] ?? 0).toFixed(0)
        const connections = [each('redisConnections'), each('postgresConnections')]
        return [size, kind, String(processes), each('cpuPercent'), each('megabytes'), ...connections]
      }),
      [
        size,
        'redis',
        '1',
        of(({ cpu, callsPerSecond }) => (cpu.redis * callsPerSecond) / 10).toFixed(0),
        '',
        `${of((it) => it.commandsPerCall * it.callsPerSecond).toFixed(0)}/s`,
        '',
      ],
      [
        ...[size, 'postgres', '1', '', '', ''],
        `${of(({ written }) => written?.transactions ?? 0).toFixed(0)}/s, ${of(({ written }) => written?.rows ?? 0).toFixed(0)} rows/s`,
      ],
    ]
  })
}

/** The cost of the gateway compared with the version before, if the run measured that version. */
function beforeLine(rounds: Rounds): string[] {
  if (!rounds[BEFORE]) return []
  const ratio = (figure: Figure) => ratioOf({ figure, against: BEFORE }, rounds).toFixed(3)
  return [
    `  against before: CPU ${ratio('cpu')}, calls a second ${ratio('callsPerSecond')}, p50 ${ratio('p50Ms')}, commands ${ratio('commandsPerCall')}`,
  ]
}

function align(rows: string[][]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) => `  ${row.map((cell, column) => cell.padStart(widths[column] ?? 0)).join('  ')}`)
}
