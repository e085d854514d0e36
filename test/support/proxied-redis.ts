import type { TestContext } from 'node:test'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { startTcpProxy, type TcpProxy } from '../chaos/tcp-proxy.ts'

/**
 * Connects to a Redis, until the end of the test, through a proxy that can be slow or lose replies.
 */
export async function connectThroughProxy(
  t: TestContext,
  redisUrl: string,
  kind: Parameters<typeof openRedis>[1],
): Promise<{ redis: RedisConnection; proxy: TcpProxy }> {
  const url = new URL(redisUrl)
  const proxy = await startTcpProxy({ host: '127.0.0.1', port: Number(url.port) })
  url.port = String(proxy.port)
  const redis = openRedis([url.href], kind, createLog({ level: 'silent', pretty: false }, 'test'))
  t.after(async () => {
    proxy.heal()
    await closeRedis(redis)
    await proxy.close()
  })
  if (redis.status !== 'ready') await new Promise<void>((resolve) => redis.once('ready', () => resolve()))
  return { redis, proxy }
}
