import { hash } from 'node:crypto'
import { Cluster } from 'ioredis'
import type { RedisConnection } from '../redis/connection.ts'
import { laneKeys, upstreamKeys } from '../redis/keys.ts'

/**
 * A lane is a BullMQ queue that carries the calls of many APIs, so that calls which come together
 * travel together whatever they are for. A call that must wait for its API does so in the queue of
 * the API's cap, never in the lane: a worker may run as many jobs as all wait queues together can
 * hold.
 */
export interface Lane {
  /** BullMQ's name of the queue. */
  name: string
  /** The prefix of the queue's keys. Its braces mark the hash slot. */
  prefix: string
}

/**
 * Number of shared lanes on a Redis Cluster. A lane has one slot, and so one node of the Cluster.
 */
const CLUSTER_LANES = 4

function laneNamed(name: string): Lane {
  return { name, prefix: laneKeys.prefix(name) }
}

/** The lanes that workers for all APIs serve. */
export function sharedLanes(redis: RedisConnection): Lane[] {
  if (!(redis instanceof Cluster)) return [laneNamed('calls')]
  return Array.from({ length: CLUSTER_LANES }, (_, index) => laneNamed(`calls-${index}`))
}

/** The shared lane of an API, the same in every process. */
export function sharedLaneOf(lanes: Lane[], slug: string): Lane {
  const [lane = laneNamed('calls')] = lanes.slice(Number.parseInt(hash('sha1', slug).slice(0, 6), 16) % lanes.length)
  return lane
}

/** The lane of workers that serve only these APIs. */
export function laneOfOnly(slugs: readonly string[]): Lane {
  return laneNamed(`only-${hash('sha1', slugs.toSorted().join()).slice(0, 12)}`)
}

/**
 * The queue of an API in versions before lanes, whose processes run beside ours during an upgrade.
 * @until 0.4.0
 */
export function earlierLaneOf(slug: string): Lane {
  return { name: slug, prefix: upstreamKeys.earlierQueuePrefix(slug) }
}
