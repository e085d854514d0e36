import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { loadedScripts } from '../../src/redis/script.ts'
import { openMonitor } from '../support/monitor.ts'
import { startServer } from './child.ts'
import { startLoadGenerator } from './load.ts'
import type { Target } from './scenario.ts'
import { startBefore, startOurs } from './subject.ts'

/**
 * Prints the commands that a call costs in Redis, by kind: `node test/bench/kinds.ts [--target
 * spread] [--connections 64] [--seconds 2] [--checkout <dir>] [--own-apis 252]`. With
 * `--connections 0` it prints what an idle gateway costs a second. Counts depend less on the
 * machine's speed than times do, so it needs no peers and no rounds.
 */
const { values } = parseArgs({
  options: {
    target: { type: 'string', default: 'spread' },
    connections: { type: 'string', default: '64' },
    seconds: { type: 'string', default: '2' },
    checkout: { type: 'string' },
    'own-apis': { type: 'string', default: '0' },
  },
})

const WARM_UP_SECONDS = 5

interface Kind {
  wire: number
  all: number
}

const kinds = new Map<string, Kind>()
let latest: Kind = { wire: 0, all: 0 }

/** The parts of a key that differ from call to call. */
const PARTICULAR = /\{(?:a:)?[^}]*\}|[\w-]{20,}/g

async function namesOfScripts(): Promise<Map<string, string>> {
  await Promise.all([import('../../workers/worker-context.ts'), import('../../src/context.ts')])
  const named = [...loadedScripts].map(([path, { script }]): [string, string] => {
    const sha = createHash('sha1').update(script.lua).digest('hex')
    return [sha, path.split('/').slice(-4).join('/')]
  })
  return new Map(named)
}

function labelOf(name: string, text: string, scripts: Map<string, string>): string {
  const [, sha = ''] = /^\S+ \[[^\]]*\] "evalsha" "(\w+)"/i.exec(text) ?? []
  const ours = scripts.get(sha)
  if (ours !== undefined) return ours
  const keys = [...text.matchAll(/"(agw:[^"]*)"/g)].slice(0, 2).map(([, key = '']) => key.replace(PARTICULAR, '*'))
  return `${name} ${keys.join(' ')}`
}

const upstream = await startServer('upstream-process.ts', {})
const load = await startLoadGenerator(true)
const playing = once(upstream.child, 'message')
upstream.child.send({ bodyBytes: 1_024, delayMs: 0 })
await playing
const subject =
  values.checkout === undefined
    ? await startOurs(upstream.url)
    : await startBefore(resolve(values.checkout), upstream.url)
try {
  const scripts = await namesOfScripts()
  const [connections, seconds] = [Number(values.connections), Number(values.seconds)]
  const request = { ...(await subject.request(values.target as Target)), connections }
  const run = async (duration: number, firstNumber: number) => {
    if (connections > 0) return await load.run({ ...request, seconds: duration, firstNumber })
    await delay(duration * 1_000)
    return { calls: duration, failures: {} }
  }
  await run(WARM_UP_SECONDS, 0)
  const { host, port, username, password } = subject.redis.options
  const url = `redis://${username || ''}:${password || ''}@${host}:${port}`
  const monitor = await openMonitor(url, ({ name, isOfScript, text }) => {
    if (!isOfScript) {
      const label = labelOf(name, text, scripts)
      latest = kinds.get(label) ?? { wire: 0, all: 0 }
      kinds.set(label, latest)
      latest.wire += 1
    }
    latest.all += 1
  })
  const { calls, failures } = await run(seconds, 1_000_000)
  monitor.close()
  const sorted = [...kinds].sort(([, a], [, b]) => b.all - a.all)
  const sum = sorted.reduce((sum, [, { wire, all }]) => ({ wire: sum.wire + wire, all: sum.all + all }), {
    wire: 0,
    all: 0,
  })
  const line = (label: string, { wire, all }: Kind): string =>
    `${(wire / calls).toFixed(3).padStart(8)} ${(all / calls).toFixed(3).padStart(8)}  ${label}`
  console.log(
    `${calls} ${connections > 0 ? 'calls' : 'seconds'} ${JSON.stringify(failures)}\n    wire      all  kind, a ${connections > 0 ? 'call' : 'second'}`,
  )
  for (const [label, kind] of [...sorted.slice(0, 40), ['sum', sum] as const]) console.log(line(label, kind))
} finally {
  await subject.stop()
  load.stop()
  upstream.child.kill('SIGKILL')
}
