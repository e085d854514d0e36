import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { Registry } from 'prom-client'
import { ConfigError, type ListenerAddress } from '../../../src/config.ts'
import { checkAddresses } from '../../../src/http/server/listen.ts'
import { createLog } from '../../../src/log.ts'
import { serveMetrics } from '../../../src/telemetry/metrics-server.ts'

const ROOT = join(import.meta.dirname, '../../..')

const local = { host: '127.0.0.1', hostVariable: 'HOST', port: 0, portVariable: 'PORT' }
const refusal = async (listening: Promise<unknown>): Promise<string> =>
  await listening.then(
    () => 'none',
    (error) => (error instanceof ConfigError ? error.message : String(error)),
  )

async function takePort(): Promise<{ port: number; free: () => void }> {
  const server = createServer().listen(0, local.host)
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, free: () => server.close() }
}

describe('a listener', () => {
  it('a listener whose address cannot be had is refused with the name of the variable', async (t) => {
    const { port, free } = await takePort()
    t.after(free)
    const check = (address: Partial<ListenerAddress>) => refusal(checkAddresses([{ ...local, ...address }]))
    assert.equal(
      await check({ port }),
      `PORT cannot be used: port ${port} is in use. Set PORT to another port, or stop the process that uses this port`,
    )
    // An address for documentation, and a name too long to be looked up.
    assert.equal(
      await check({ host: '203.0.113.1' }),
      'HOST cannot be used: 203.0.113.1 is not an address of this machine',
    )
    const name = 'x'.repeat(64)
    assert.equal(await check({ host: name }), `HOST cannot be used: the name ${name} has no address`)
    assert.equal(await check({}), 'none')
  })

  it('a listener that needs the port of another one of the same start is refused before either starts', async () => {
    const { port, free } = await takePort()
    free()
    const metrics = { ...local, port, hostVariable: 'METRICS_HOST', portVariable: 'METRICS_PORT' }
    assert.equal(
      await refusal(checkAddresses([{ ...local, port }, metrics])),
      `METRICS_PORT cannot be used: PORT needs port ${port} too. Set METRICS_PORT to another port`,
    )
    assert.equal(await refusal(checkAddresses([metrics])), 'none', 'what was tried is free again')
  })

  it('a listener for metrics whose port is taken is refused with the name of the variable', async (t) => {
    const { port, free } = await takePort()
    t.after(free)
    const log = createLog({ level: 'silent', pretty: false }, 'test')
    const readiness = { check: () => assert.fail('nobody asks') } as never
    const http = { metricsHost: local.host, metricsPort: port } as never
    assert.equal(
      await refusal(serveMetrics(http, { registry: new Registry(), readiness, log })),
      `METRICS_PORT cannot be used: port ${port} is in use. Set METRICS_PORT to another port, or stop the process that uses this port`,
    )
  })

  it('every listener is started with the names of its variables', async () => {
    const files = (await readdir(join(ROOT, 'src'), { recursive: true })).filter((name) => name.endsWith('.ts'))
    const texts = await Promise.all(files.map(async (name) => [name, await readFile(join(ROOT, 'src', name), 'utf8')]))
    const listening = texts.filter(([, text]) => text?.includes('.listen('))
    assert.ok(listening.length >= 4)
    // A port that an embedded store is looked for has no variable.
    const unnamed = listening.filter(([, text]) => !text?.includes('orNaming(')).map(([name]) => name)
    assert.deepEqual(unnamed, ['local/embedded/free-port.ts'])
  })
})
