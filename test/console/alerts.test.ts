import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { runCommand } from '../../src/local/embedded/run-command.ts'
import { createFleetMetrics, createMetrics } from '../../src/telemetry/metrics.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

/** Anchors of the sections of the page /runbooks. */
const anchors = new Set(
  [...read('src/docs/operators/runbooks.md').matchAll(/^## (.+)$/gm)].map(([, title = '']) =>
    title.toLowerCase().replaceAll(' ', '-'),
  ),
)

const { registry } = createMetrics('ops', { inFlight: () => 0, busy: () => 0 })
createFleetMetrics(registry)
const metrics = new Set(registry.getMetricsAsArray().map(({ name }) => name))

/** Names of metrics in a query, without the endings that Prometheus adds. */
const namesOf = (query: string) =>
  [...query.matchAll(/\b(?:agw|nodejs|process)_[a-z0-9_]+/g)].map(([name]) => name.replace(/_bucket$/, ''))

const runPromtool = (words: string[], cwd: URL) => runCommand('promtool', words, { cwd, timeoutMs: 60_000 })

/** Why the rules cannot run here; false if they can. */
const promtool =
  (await runPromtool(['--version'], new URL('.', import.meta.url))).code === 0
    ? false
    : 'promtool is not on the PATH (Debian: prometheus)'

const fleetSources = () =>
  readdirSync(new URL('../../src/fleet/', import.meta.url))
    .filter((name) => /problems|failure-kinds/.test(name))
    .map((name) => read(`src/fleet/${name}`))
    .join('\n')

/** The rule that finds a problem by a metric of its own; null if the problem needs no alert. */
const RULE_OF: Record<string, string | null> = {
  Approval: null,
  'Call log': 'CallLogDropped',
  'Cap used up': 'CapUsedUp',
  Degraded: 'UpstreamDegraded',
  Down: 'UpstreamDown',
  ENCRYPTION_KEY: null,
  Refused: 'RefusedBySource',
  Limited: 'UpstreamLimited',
  Network: 'Network',
  'No API node': 'NoApiNode',
  'No contact': null,
  'No probe process': 'NoProbeProcess',
  'Our error': 'InternalErrors',
  Overloaded: 'Overloaded',
  Paused: 'Paused',
  Postgres: 'PostgresAway',
  'No worker': 'NoWorker',
  'Redis file': 'RedisKeepsNothing',
  'Redis full': 'RedisFull',
  'Store unreachable': 'StoreUnreachable',
  'Too late': 'Deadlines',
}

describe('the alert rules', () => {
  const rules = [
    ...read('src/console/grafana/alerts.yaml').matchAll(/- alert: (\w+)\n([\s\S]*?)(?=\n {6}- alert|\s*$)/g),
  ]

  it('the alert rules use metrics that exist, and each alert links to a runbook', () => {
    assert.ok(rules.length >= 15, String(rules.length))
    for (const [, alert = '', rule = ''] of rules) {
      const names = namesOf(/expr: (.*)/.exec(rule)?.[1] ?? '')
      assert.ok(names.length > 0, alert)
      for (const name of names) assert.ok(metrics.has(name), `${alert} asks for ${name}`)
      const [, , runbook] = /runbook_url: "CONSOLE_URL\/runbooks(#([\w-]+))?"/.exec(rule) ?? assert.fail(alert)
      assert.ok(runbook === undefined || anchors.has(runbook), `${alert}: no runbook ${runbook}`)
    }
  })

  it('the alert rules cover every problem that the console lists, by the label that it gives them', () => {
    const [, , rule = ''] = rules.find(([, alert]) => alert === 'NeedsOperator') ?? assert.fail()
    const labels = /label=~"([^"]+)"/.exec(rule)?.[1]?.split('|') ?? []
    const listed = new Set([...fleetSources().matchAll(/label: '([^']+)'/g)].map(([, label = '']) => label))
    assert.ok(listed.size >= 18)
    for (const label of labels) assert.ok(listed.has(label), label)
    for (const [label, alert] of Object.entries(RULE_OF)) {
      assert.ok(alert === null || rules.some(([, name]) => name === alert), label)
      assert.ok(!labels.includes(label), `${label} has a rule of its own`)
    }
    // Health's own words, of which there is no list: these two are problems.
    for (const label of [...listed, 'Down', 'Degraded']) assert.ok(labels.includes(label) || label in RULE_OF, label)
  })

  it('the alert rules do what their unit tests say, in promtool', { skip: promtool }, async () => {
    const folder = new URL('.', import.meta.url)
    const { code, output } = await runPromtool(['test', 'rules', 'alerts.promtool.yaml'], folder)
    assert.equal(code, 0, output)
    const checked = await runPromtool(['check', 'rules', '../../src/console/grafana/alerts.yaml'], folder)
    assert.equal(checked.code, 0, checked.output)
  })

  it('the alert rules never wait for longer than callers do', () => {
    const [, , stuck = ''] = rules.find(([, alert]) => alert === 'QueueStuck') ?? assert.fail()
    // Synchronous callers leave after CALL_TIMEOUT_MS, 30 s if it is not set.
    assert.ok(Number(/agw_queue_oldest_seconds\) > (\d+)/.exec(stuck)?.[1]) < 30)
  })
})

describe('the metrics', () => {
  it('the names and descriptions of all metrics, which the console has together, are as Prometheus wants', {
    skip: promtool,
  }, async () => {
    const file = join(await mkdtemp(join(tmpdir(), 'agw-metrics-')), 'metrics.txt')
    await writeFile(file, await registry.metrics())
    const folder = new URL('.', import.meta.url)
    const checking = ['-c', 'promtool check metrics < "$0"', file]
    assert.deepEqual(await runCommand('sh', checking, { cwd: folder, timeoutMs: 60_000 }), { code: 0, output: '' })
    await rm(dirname(file), { recursive: true })
  })
})

describe('the problems that the console lists', () => {
  it('the problems that the console lists have a runbook each', () => {
    const runbooks = [...fleetSources().matchAll(/runbook: (?:isDown \? )?'([\w-]+)'(?: : '([\w-]+)')?/g)].flatMap(
      ([, a, b]) => [a, b],
    )
    const known = runbooks.filter((name) => name !== undefined)
    assert.ok(known.length >= 14, known.join())
    for (const name of known) assert.ok(anchors.has(name), `no runbook ${name}`)
  })

  it('each label and each alert is the name of a runbook, or the table at the head leads to its runbook', () => {
    const [, head = ''] = /^## Labels and alerts$([\s\S]*?)^## /m.exec(read('src/docs/operators/runbooks.md')) ?? []
    const rows = [...head.matchAll(/^\| (.*?) ?\| (.*?) ?\| (.*) \|$/gm)]
    const labels = new Set([...fleetSources().matchAll(/label: '([^']+)'/g)].map(([, label = '']) => label))
    assert.ok(labels.size >= 18)
    for (const label of [...labels, 'Down', 'Degraded']) {
      const isNamed = anchors.has(label.toLowerCase().replaceAll(' ', '-'))
      assert.ok(isNamed || rows.some(([, name]) => name === label), label)
    }
    const rules = read('src/console/grafana/alerts.yaml').matchAll(/alert: (\w+)$[\s\S]*?\/runbooks#?([\w-]*)"/gm)
    for (const [, alert = '', section = ''] of rules) {
      const isNamed = section === alert.replaceAll(/(?<!^)(?=[A-Z])/g, '-').toLowerCase()
      const row = rows.find(([, , names = '']) => names.includes(`\`${alert}\``))
      assert.ok(isNamed || section === '' || row?.[3]?.includes(`(#${section})`), alert)
    }
  })
})

describe('the Grafana dashboard', () => {
  it('the Grafana dashboard asks for metrics that there are, and leads to the console', () => {
    const { panels, links } = JSON.parse(read('src/console/grafana/dashboard.json'))
    for (const { title, targets } of panels as { title: string; targets: { expr: string }[] }[]) {
      for (const { expr } of targets)
        for (const name of namesOf(expr)) assert.ok(metrics.has(name), `${title}: ${name}`)
    }
    assert.ok(links.some(({ url }: { url: string }) => url.endsWith('/queues')))
  })
})
