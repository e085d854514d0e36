--[[ Stores an answer and keeps the answers of its room within their bytes; those that end soonest make way.
     Input:  KEYS entry, index (by end), sizes
             ARGV[1] frame  ARGV[2] life (ms)  ARGV[3] now (ms)  ARGV[4] room (bytes)
     Output: bytes that the entry takes ]]
local ENTRY, INDEX, SIZES = unpack(KEYS)
local frame, lifeMs, now, room = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local function drop(keys)
  for _, key in ipairs(keys) do
    local bytes = redis.call('HGET', SIZES, key)
    if bytes then redis.call('HINCRBY', SIZES, 'total', '-' .. bytes) end
    redis.call('HDEL', SIZES, key)
    redis.call('ZREM', INDEX, key)
    redis.call('DEL', key)
  end
end
drop(redis.call('ZRANGEBYSCORE', INDEX, '-inf', now, 'LIMIT', 0, 500))
drop({ENTRY})
redis.call('SET', ENTRY, frame, 'PX', lifeMs)
-- What Redis really uses: small answers cost more beside themselves than they are long.
local size = redis.call('MEMORY', 'USAGE', ENTRY) + 2 * #ENTRY + INDEX_BYTES
while tonumber(redis.call('HGET', SIZES, 'total') or 0) > room - size do
  local first = redis.call('ZRANGE', INDEX, 0, 9)
  if #first == 0 then break end
  drop(first)
end
redis.call('ZADD', INDEX, now + tonumber(lifeMs), ENTRY)
redis.call('HSET', SIZES, ENTRY, size)
redis.call('HINCRBY', SIZES, 'total', size)
return size
