import type { Config } from '../config.ts'
import { createLog } from '../log.ts'
import { CallQueues } from '../queue/call-queue.ts'
import { enqueueProbe } from '../queue/probe-job.ts'
import { closeRedis, openRedis } from '../redis/connection.ts'

/**
 * Makes the gateway probe upstreams, even if calls already show their health. Never throws: if
 * Redis is away, the start only prints less.
 *
 * @param probes.name name of the jobs; under one name an upstream is probed only once
 */
export async function probeNow(config: Config, { slugs, name }: { slugs: string[]; name: string }): Promise<void> {
  const log = createLog(config.log, 'start')
  const redis = openRedis(config.redisUrls, 'blocking', log)
  const queues = new CallQueues(redis, log)
  try {
    await Promise.all(slugs.map((slug) => enqueueProbe(queues, slug, { name, isForced: true, skipsPause: true })))
  } catch (error) {
    log.debug({ err: error }, 'failed to probe at the start')
  } finally {
    await queues.close().catch((error) => log.debug({ err: error }, 'failed to close the queues of the start'))
    await closeRedis(redis)
  }
}
