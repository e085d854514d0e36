import type { Lane } from '../../src/queue/lanes.ts'
import { laneKeys } from '../../src/redis/keys.ts'

/** The lane of all APIs on a Redis that is no Cluster. */
export const LANE: Lane = { name: 'calls', prefix: laneKeys.prefix('calls') }

/** A key of this lane, such as `wait` or `<job>:lock`. */
export const laneKey = (part: string): string => `${LANE.prefix}:${LANE.name}:${part}`
