-- Ends the leases of permits whose requests took `meanMs` in the mean, and learns from it how long a request takes.
local function releasePermits(permits, meanMs)
  if #permits == 0 then return end
  redis.call('ZREM', LEASES, unpack(permits))
  local known = tonumber(redis.call('HGET', STATE, 'serviceMs') or 0)
  local weight = math.min(0.5, 0.1 * #permits)
  local serviceMs = known == 0 and meanMs or known * (1 - weight) + meanMs * weight
  redis.call('HSET', STATE, 'serviceMs', string.format('%.1f', serviceMs))
end
