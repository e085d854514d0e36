import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from './gateway.ts'
import { type RedisServer, startClusterNode, stopClusterNode } from './redis-server.ts'

const MASTERS = 3
const SLOTS = 16_384

/** Time after which the replica of a silent node takes over, milliseconds. */
const NODE_TIMEOUT_MS = 1_500

export interface ClusterNode extends RedisServer {
  url: string
}

/** Three masters, each with a replica, on servers of this machine. */
export interface RedisCluster {
  nodes: ClusterNode[]
  /** The node that serves a slot now. */
  masterOf: (slot: number) => Promise<ClusterNode>
  replicaOf: (master: ClusterNode) => Promise<ClusterNode>
  /** Moves a slot with its keys to another master. */
  moveSlot: (slot: number, to: ClusterNode) => Promise<void>
  stop: () => Promise<void>
}

export async function startRedisCluster(): Promise<RedisCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'agw-cluster-'))
  const nodes: ClusterNode[] = []
  const stop = async () => {
    await Promise.all(nodes.map(stopClusterNode))
    await rm(folder, { recursive: true, force: true })
  }
  try {
    for (let index = 0; index < 2 * MASTERS; index += 1) nodes.push(await startNode(join(folder, String(index))))
    await joinNodes(nodes)
  } catch (error) {
    await stop()
    throw error
  }
  const alive = () => nodes.filter(({ server }) => !server.hasEnded())
  const nodeAt = (port: number) => nodes.find((node) => node.port === port) ?? assert.fail(`no node on port ${port}`)
  return {
    nodes,
    masterOf: async (slot) => {
      // During a failover a node may know no master of the slot.
      let port: number | undefined
      await until(async () => {
        port = findPort(await (alive()[0] ?? assert.fail()).client.cluster('SLOTS'), slot)
        return port !== undefined
      }, 10_000)
      return nodeAt(port ?? assert.fail())
    },
    replicaOf: async (master) => {
      const id = await master.client.cluster('MYID')
      const lines = String(await master.client.cluster('REPLICAS', id))
      return nodeAt(Number(/:(\d+)@/.exec(lines)?.[1]))
    },
    moveSlot: async (slot, to) => await moveSlot(alive(), slot, to),
    stop,
  }
}

async function startNode(dir: string): Promise<ClusterNode> {
  const node = await startClusterNode(dir, (port) => [
    ...[`port ${port}`, `cluster-node-timeout ${NODE_TIMEOUT_MS}`, 'maxmemory-policy noeviction'],
    ...['cluster-replica-validity-factor 0', 'repl-diskless-sync-delay 0'],
  ])
  return { ...node, url: `redis://127.0.0.1:${node.port}` }
}

/**
 * Makes the nodes a Cluster: the first three nodes share the slots, and each other node is a
 * replica of one of these three.
 */
async function joinNodes(nodes: ClusterNode[]): Promise<void> {
  const [first] = nodes
  assert.ok(first)
  for (const { client } of nodes.slice(1)) {
    await client.call('CLUSTER', 'MEET', '127.0.0.1', String(first.port), String(first.busPort))
  }
  const knowsAll = async ({ client }: ClusterNode) =>
    String(await client.cluster('NODES'))
      .trim()
      .split('\n')
      .filter((line) => !line.includes('handshake')).length === nodes.length
  await until(async () => (await Promise.all(nodes.map(knowsAll))).every(Boolean), 20_000)
  const masters = nodes.slice(0, MASTERS)
  await Promise.all(
    masters.map(async ({ client }, index) => {
      const from = Math.floor((index * SLOTS) / MASTERS)
      const to = Math.floor(((index + 1) * SLOTS) / MASTERS) - 1
      await client.call('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to))
    }),
  )
  await Promise.all(
    nodes.slice(MASTERS).map(async ({ client }, index) => {
      const id = await (masters[index] ?? assert.fail()).client.cluster('MYID')
      await client.cluster('REPLICATE', id)
    }),
  )
  const isWhole = async ({ client }: ClusterNode) => /cluster_state:ok/.test(String(await client.cluster('INFO')))
  const isLinked = async ({ client }: ClusterNode) => /master_link_status:up/.test(await client.info('replication'))
  await until(async () => (await Promise.all(nodes.map(isWhole))).every(Boolean), 20_000)
  await until(async () => (await Promise.all(nodes.slice(MASTERS).map(isLinked))).every(Boolean), 20_000)
}

type SlotRange = [from: number, to: number, ...nodes: [host: string, port: number, ...rest: unknown[]][]]

/** The port of the master that serves a slot, if a node knows a master. */
function findPort(ranges: SlotRange[], slot: number): number | undefined {
  return ranges.find(([from, to]) => from <= slot && slot <= to)?.[2]?.[1]
}

async function moveSlot(nodes: ClusterNode[], slot: number, to: ClusterNode): Promise<void> {
  const ids = new Map(await Promise.all(nodes.map(async (node) => [node, await node.client.cluster('MYID')] as const)))
  const ranges = await to.client.cluster('SLOTS')
  const from = nodes.find(({ port }) => port === findPort(ranges, slot)) ?? assert.fail()
  await to.client.cluster('SETSLOT', slot, 'IMPORTING', ids.get(from) ?? '')
  await from.client.cluster('SETSLOT', slot, 'MIGRATING', ids.get(to) ?? '')
  for (;;) {
    const keys = await from.client.cluster('GETKEYSINSLOT', slot, 100)
    if (keys.length === 0) break
    await from.client.call('MIGRATE', '127.0.0.1', String(to.port), '', '0', '5000', 'KEYS', ...keys)
  }
  for (const { client } of [to, from]) await client.cluster('SETSLOT', slot, 'NODE', ids.get(to) ?? '')
}
