import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { atMost } from '../soak/scenario.ts'
import type { Rig } from './rig.ts'
import type { ChaosScenario } from './scenario.ts'

/** The figures that grow if something leaks. */
interface Footprint {
  /** Resident memory of API nodes and workers together, MB. */
  memoryMb: number
  /** Keys in Redis, except stored answers, which are bounded and have a lifetime. */
  keys: number
  connections: number
}

const footprints: Footprint[] = []

const MINUTES = 10
const SAMPLE_MS = 30_000

/** Ten minutes of steady load in which memory, keys and connections must stay flat. */
export const soak: ChaosScenario = {
  name: 'soak',
  about: `${MINUTES} minutes of steady load: memory, keys and connections stay flat`,
  seconds: MINUTES * 60,
  perSecond: { weather: 40, 'air-quality': 1 },
  faults: async (rig) => {
    const endsAt = performance.now() + (MINUTES * 60 - 10) * 1_000
    while (performance.now() < endsAt) {
      await delay(Math.min(SAMPLE_MS, endsAt - performance.now()))
      footprints.push(await footprintOf(rig))
      rig.say(JSON.stringify(footprints.at(-1)))
    }
  },
  allow: { failedMax: 0 },
  claims: () => {
    // The first minutes warm caches and compiled code. After them nothing may grow.
    const settled = footprints.slice(Math.floor(footprints.length / 3))
    const first = settled.slice(0, Math.ceil(settled.length / 2))
    const second = settled.slice(Math.ceil(settled.length / 2))
    const most = (list: Footprint[], pick: (footprint: Footprint) => number) => Math.max(...list.map(pick))
    return [
      atMost(
        'memory, later part against earlier',
        most(second, ({ memoryMb }) => memoryMb) / most(first, ({ memoryMb }) => memoryMb),
        1.25,
      ),
      atMost(
        'keys, later part against earlier',
        most(second, ({ keys }) => keys) / most(first, ({ keys }) => keys),
        1.25,
      ),
      atMost(
        'connections, later part less earlier',
        most(second, ({ connections }) => connections) - most(first, ({ connections }) => connections),
        4,
      ),
    ]
  },
}

async function footprintOf({ gateway, store }: Rig): Promise<Footprint> {
  const pids = [...gateway.web, ...gateway.workers].flatMap(({ pid }) => (pid === undefined ? [] : [pid]))
  const memoryMb = pids.reduce((sum, pid) => sum + residentMb(pid), 0)
  const clients = (await store.info('clients')).match(/connected_clients:(\d+)/)?.[1]
  let keys = 0
  for (let cursor = '0'; ; ) {
    const [next, names] = await store.scan(cursor, 'COUNT', 1_000)
    keys += names.filter((name) => !name.includes(':cache:')).length
    cursor = next
    if (cursor === '0') break
  }
  return { memoryMb: Math.round(memoryMb), keys, connections: Number(clients) }
}

function residentMb(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kilobytes ?? 0) / 1_024
}
