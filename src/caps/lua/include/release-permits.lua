-- Takes back permits under which nothing was sent: they do not count. Returns how many had not
-- ended before.
local function takeBackPermits(permits)
  if #permits == 0 then return 0 end
  redis.call('ZREM', LOG, unpack(permits))
  local ended = redis.call('ZREM', LEASES, unpack(permits))
  if ended > 0 and redis.call('HEXISTS', STATE, 'left') == 1 then redis.call('HINCRBY', STATE, 'left', ended) end
  return ended
end

-- Ends the leases of permits whose requests took `meanMs` in the mean, and learns from it how long
-- a request takes. After the upstream had closed itself, each request that it did not refuse lets
-- one more be under way at once. A permit without a lease teaches nothing: it ended before, by a
-- command that is sent again, or was given up for lost.
local function releasePermits(permits, meanMs)
  if #permits == 0 then return end
  local ended = redis.call('ZREM', LEASES, unpack(permits))
  if ended == 0 then return end
  local known, ramp, rampPermit = unpack(redis.call('HMGET', STATE, 'serviceMs', 'ramp', 'rampPermit'))
  local serviceMs, weight = tonumber(known or 0), math.min(0.5, 0.1 * ended)
  serviceMs = serviceMs == 0 and meanMs or serviceMs * (1 - weight) + meanMs * weight
  redis.call('HSET', STATE, 'serviceMs', string.format('%.1f', serviceMs))
  if not ramp then return end
  local answered = 0
  for _, permit in ipairs(permits) do
    if tonumber(string.match(permit, '%d+$') or 0) > tonumber(rampPermit) then answered = answered + 1 end
  end
  local grown = tonumber(ramp) + math.min(answered, ended)
  if grown >= RAMP_MAX then redis.call('HDEL', STATE, 'ramp', 'rampPermit') else redis.call('HSET', STATE, 'ramp', grown) end
end
