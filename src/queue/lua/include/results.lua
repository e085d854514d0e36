-- What an account's kept results take: INDEX has `<bytes> <call id>` by when the result ends (ms),
-- TOTAL their bytes. Forgets results that have ended. Returns the bytes of the others.
local function bytesKept(INDEX, TOTAL, nowMs)
  local ended, bytes = redis.call('ZRANGEBYSCORE', INDEX, '-inf', nowMs), 0
  for _, member in ipairs(ended) do bytes = bytes + tonumber(string.match(member, '^%d+')) end
  if bytes == 0 then return tonumber(redis.call('GET', TOTAL) or 0) end
  redis.call('ZREMRANGEBYSCORE', INDEX, '-inf', nowMs)
  return redis.call('DECRBY', TOTAL, bytes)
end

-- Until the oldest result ends, ms.
local function untilNextEnd(INDEX, nowMs)
  local oldest = redis.call('ZRANGE', INDEX, 0, 0, 'WITHSCORES')
  return oldest[2] and math.max(1, tonumber(oldest[2]) - nowMs) or 0
end
