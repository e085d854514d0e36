--[[ Stores an answer and keeps the answers of its partition within their bytes. A full partition evicts answers of the owner
     that has most, those that end soonest first: nobody evicts the answers of an owner that has less.
     Input:  KEYS entry, index (by end), sizes (`<bytes> <owner>`), owners (by bytes)
             ARGV[1] frame  ARGV[2] life (ms)  ARGV[3] now (ms)  ARGV[4] bytes of the partition  ARGV[5] owner
     Output: bytes that the entry takes ]]
local ENTRY, INDEX, SIZES, OWNERS = unpack(KEYS)
local frame, lifeMs, now, bytesMax, owner = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]

local function drop(key)
  local kept = redis.call('HGET', SIZES, key)
  if kept then
    local bytes, itsOwner = string.match(kept, '^(%d+) ?(.*)$')
    redis.call('HINCRBY', SIZES, 'total', '-' .. bytes)
    if tonumber(redis.call('ZINCRBY', OWNERS, '-' .. bytes, itsOwner)) <= 0 then redis.call('ZREM', OWNERS, itsOwner) end
  end
  redis.call('HDEL', SIZES, key)
  redis.call('ZREM', INDEX, key)
  redis.call('DEL', key)
end

-- The answer to evict next: among those that end soonest, the first of the owner that has most.
local function nextToEvict()
  local soonest, largest = redis.call('ZRANGE', INDEX, 0, SEARCHED_MAX - 1), redis.call('ZREVRANGE', OWNERS, 0, 0)[1]
  if #soonest == 0 then return nil end
  for index, kept in ipairs(redis.call('HMGET', SIZES, unpack(soonest))) do
    if kept and string.match(kept, '^%d+ ?(.*)$') == largest then return soonest[index] end
  end
  return soonest[1]
end

for _, key in ipairs(redis.call('ZRANGEBYSCORE', INDEX, '-inf', now, 'LIMIT', 0, 500)) do drop(key) end
drop(ENTRY)
redis.call('SET', ENTRY, frame, 'PX', lifeMs)
-- What Redis really uses: small answers cost more beside themselves than they are long.
local size = redis.call('MEMORY', 'USAGE', ENTRY) + 2 * #ENTRY + INDEX_BYTES
redis.call('ZINCRBY', OWNERS, size, owner)
while tonumber(redis.call('HGET', SIZES, 'total') or 0) > bytesMax - size do
  local first = nextToEvict()
  if not first then break end
  drop(first)
end
redis.call('ZADD', INDEX, now + tonumber(lifeMs), ENTRY)
redis.call('HSET', SIZES, ENTRY, size .. ' ' .. owner)
redis.call('HINCRBY', SIZES, 'total', size)
return size
