-- Ends the leases of permits whose requests took `meanMs` in the mean, and learns from it how long a request takes.
-- After the upstream had closed itself, each request that it did not refuse lets one more be under way at once. A permit
-- without a lease teaches nothing: it ended before, by a command that is sent again, or was given up for lost.
local function releasePermits(permits, meanMs)
  if #permits == 0 then return end
  local leases, ended = redis.call('ZMSCORE', LEASES, unpack(permits)), {}
  for index, permit in ipairs(permits) do
    if leases[index] then ended[#ended + 1] = permit end
  end
  if #ended == 0 then return end
  redis.call('ZREM', LEASES, unpack(ended))
  local known = redis.call('HMGET', STATE, 'serviceMs', 'ramp', 'rampPermit')
  local serviceMs, weight = tonumber(known[1] or 0), math.min(0.5, 0.1 * #ended)
  serviceMs = serviceMs == 0 and meanMs or serviceMs * (1 - weight) + meanMs * weight
  redis.call('HSET', STATE, 'serviceMs', string.format('%.1f', serviceMs))
  if not known[2] then return end
  local grown = tonumber(known[2])
  for _, permit in ipairs(ended) do
    if tonumber(string.match(permit, '%d+$') or 0) > tonumber(known[3]) then grown = grown + 1 end
  end
  if grown >= RAMP_MAX then redis.call('HDEL', STATE, 'ramp', 'rampPermit') else redis.call('HSET', STATE, 'ramp', grown) end
end
