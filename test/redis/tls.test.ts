import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { promisify } from 'node:util'
import { pino } from 'pino'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { withClusterNodes } from '../../src/redis/server-info.ts'
import { until } from '../support/gateway.ts'
import { type RedisServer, startClusterNode, stopClusterNode } from '../support/redis-server.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')
const trusted = getCACertificates('default')

/** Nodes of a Cluster, each with a user and a password of its own; nothing listens without TLS. */
const NODES = [
  { user: 'first', password: 'p@ss:/1', slots: [0, 8_191] },
  { user: 'second', password: 'p@ss:/2', slots: [8_192, 16_383] },
]

const nodes: RedisServer[] = []
const urls: string[] = []
let folder: string
let ca: string

async function makeCertificate(names: string): Promise<{ certFile: string; keyFile: string }> {
  const [certFile, keyFile] = [join(folder, `${names.length}-cert.pem`), join(folder, `${names.length}-key.pem`)]
  await promisify(execFile)('openssl', [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', keyFile, '-out', certFile],
    ...['-subj', '/CN=localhost', '-addext', `subjectAltName=${names}`, '-days', '1'],
  ])
  return { certFile, keyFile }
}

const passwordOf = (password: string): string => encodeURIComponent(password)

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agw-tls-'))
  const { certFile, keyFile } = await makeCertificate('DNS:localhost,IP:127.0.0.1')
  ca = await readFile(certFile, 'utf8')
  setDefaultCACertificates([...trusted, ca])
  for (const { user, password } of NODES) {
    const settings = (port: number) => [
      ...['port 0', `tls-port ${port}`, `tls-cert-file ${certFile}`, `tls-key-file ${keyFile}`],
      ...[`tls-ca-cert-file ${certFile}`, 'tls-auth-clients no', 'tls-cluster yes'],
      ...['user default off', `user ${user} on ~* &* +@all >${password}`],
    ]
    const node = await startClusterNode(join(folder, user), settings, { username: user, password, tls: {} })
    nodes.push(node)
    urls.push(`rediss://${user}:${passwordOf(password)}@127.0.0.1:${node.port}`)
  }
  const [first, second] = nodes
  assert.ok(first && second)
  await first.client.call('CLUSTER', 'MEET', '127.0.0.1', String(second.port), String(second.busPort))
  for (const [index, { slots }] of NODES.entries()) {
    await nodes[index]?.client.call('CLUSTER', 'ADDSLOTSRANGE', ...slots.map(String))
  }
  const isWhole = async ({ client }: RedisServer) => /cluster_state:ok/.test(String(await client.cluster('INFO')))
  await until(async () => (await Promise.all(nodes.map(isWhole))).every(Boolean), 20_000)
})
after(async () => {
  setDefaultCACertificates(trusted)
  await Promise.all(nodes.map(stopClusterNode))
  await rm(folder, { recursive: true, force: true })
})

/** Opens the nodes and gives the first reason why that failed. */
async function refusalOf(addresses: string[]): Promise<string> {
  const lines: string[] = []
  const redis = openRedis(addresses, 'blocking', pino({}, { write: (line) => void lines.push(line) }))
  const found = () => lines.map((line) => JSON.parse(line)).find(({ reason }) => reason !== undefined)
  try {
    await until(() => found() !== undefined)
    assert.doesNotMatch(lines.join(''), /p@ss|p%40ss/)
    return found().reason
  } finally {
    redis.disconnect()
  }
}

describe('a Redis Cluster behind TLS', () => {
  it('a Redis Cluster behind TLS is used with the user and password of each address of the list', async () => {
    for (const kind of ['producer', 'blocking'] as const) {
      const redis = openRedis(urls, kind, log)
      await until(() => redis.status === 'ready')
      // Keys of many slots: half of them on either node.
      const keys = Array.from({ length: 40 }, (_, index) => `{${kind}${index}}`)
      await Promise.all(keys.map((key) => redis.set(key, key)))
      assert.deepEqual(await Promise.all(keys.map((key) => redis.get(key))), keys)
      await closeRedis(redis)
    }
  })

  it('a Redis Cluster behind TLS whose certificate has only host names is reached by the names that it announces', async (t) => {
    const { certFile, keyFile } = await makeCertificate('DNS:localhost')
    setDefaultCACertificates([...trusted, ca, await readFile(certFile, 'utf8')])
    t.after(() => setDefaultCACertificates([...trusted, ca]))
    const node = await startClusterNode(
      join(folder, 'named'),
      (port) => [
        ...['port 0', `tls-port ${port}`, `tls-cert-file ${certFile}`, `tls-key-file ${keyFile}`],
        ...[`tls-ca-cert-file ${certFile}`, 'tls-auth-clients no', 'tls-cluster yes'],
        ...['cluster-announce-hostname localhost', 'cluster-preferred-endpoint-type hostname'],
      ],
      { tls: { servername: 'localhost' } },
    )
    t.after(() => stopClusterNode(node))
    await node.client.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
    await until(async () => /cluster_state:ok/.test(String(await node.client.cluster('INFO'))))
    // The process that is given one address finds the nodes first, as its settings are read.
    const named = `rediss://localhost:${node.port}`
    const { redisUrls } = await withClusterNodes({ redisUrls: [named], cacheRedisUrls: [named] })
    assert.deepEqual(redisUrls, [named, named])
    const redis = openRedis(redisUrls, 'producer', log)
    t.after(() => closeRedis(redis))
    await until(() => redis.status === 'ready', 5_000)
    assert.equal(await redis.set('key', 'value'), 'OK')
  })

  it('a Redis Cluster behind TLS that refuses a password says so, with neither password nor user in the log', async () => {
    const wrong = urls.map((url) => url.replace(/:[^:]*@/, ':wrong@'))
    assert.match(await refusalOf(wrong), /WRONGPASS/)
    assert.match(await refusalOf(wrong.slice(0, 1)), /WRONGPASS/)
  })

  it('a Redis Cluster behind TLS whose certificate is not trusted is not used, and the log has the reason', async () => {
    setDefaultCACertificates(trusted)
    try {
      assert.match(await refusalOf(urls.slice(0, 1)), /self-signed certificate/)
      assert.match(await refusalOf(urls), /self-signed certificate/)
    } finally {
      setDefaultCACertificates([...trusted, ca])
    }
  })

  it('the problem of a Redis Cluster behind TLS that lost a part states how many slots are served', async () => {
    for (const { client } of nodes) {
      await client.call('CLUSTER', 'DELSLOTSRANGE', '4096', '8191')
      await until(async () => /cluster_state:fail/.test(String(await client.cluster('INFO'))))
    }
    assert.match(await refusalOf(urls), /^127\.0\.0\.1:\d+: the Cluster is down: 12288 of 16384 slots are served$/)
  })
})
