import type { RedisConnection } from '../redis/connection.ts'
import { capKeys } from '../redis/keys.ts'
import { Script } from '../redis/script.ts'
import type { CapScope } from './cap-keys.ts'
import type { PermitId } from './permit.ts'

/**
 * What the upstream says of its own limiter. ARGV: closed for ms (0: not), left ('' unknown), left for ms, permit of the
 * request that was told.
 */
const TIGHTEN = new Script(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local closeMs = tonumber(ARGV[1])
if closeMs > 0 and now + closeMs > tonumber(redis.call('HGET', KEYS[8], 'closed') or 0) then
  redis.call('HSET', KEYS[8], 'closed', now + closeMs)
end
if ARGV[2] ~= '' then
  -- The upstream has counted the one that was told, and maybe not the others under way: the lower figure is the safe one.
  local others = redis.call('ZCARD', KEYS[7]) - (redis.call('ZSCORE', KEYS[7], ARGV[4]) and 1 or 0)
  local left = math.max(0, tonumber(ARGV[2]) - others)
  -- One that was granted before the last telling and comes after it, because its answer was slow, knows no better.
  local known = redis.call('HMGET', KEYS[8], 'left', 'leftUntil', 'leftPermit', 'permits')
  local permit = tonumber(string.match(ARGV[4], '%d+$'))
  if tonumber(known[2] or 0) > now and permit and permit <= tonumber(known[3] or 0) then
    left = math.min(left, tonumber(known[1] or 0))
  end
  redis.call('HSET', KEYS[8], 'left', left, 'leftUntil', now + tonumber(ARGV[3]), 'leftPermit', known[4] or 0)
end
return 1
`)

/** Holds a cap to what the upstream itself says, for all workers at once: closed for a time, or so many requests left. */
export async function tightenCap(
  redis: RedisConnection,
  slug: string,
  scope: CapScope,
  said: {
    closeMs?: number | undefined
    left?: { remaining: number; resetMs: number } | undefined
    /** Permit of the request that was told. */
    toldUnder: PermitId
  },
): Promise<void> {
  const { closeMs = 0, left, toldUnder } = said
  await TIGHTEN.run(redis, capKeys.all(slug, scope), [
    Math.ceil(closeMs),
    left?.remaining ?? '',
    Math.ceil(left?.resetMs ?? 0),
    toldUnder,
  ])
}
