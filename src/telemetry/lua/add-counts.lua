--[[ Adds counts to a hash, or to a sorted set that keeps the largest counts.
     Input:  KEYS[1] counts
             ARGV[1] how long they are kept (s)  ARGV[2] how many a sorted set keeps, empty for a
             hash  ARGV[3…] field, count, field, count …
     Output: 1 ]]
local COUNTS, seconds, keptMax = KEYS[1], ARGV[1], tonumber(ARGV[2])
for index = 3, #ARGV, 2 do
  local field, count = ARGV[index], ARGV[index + 1]
  if keptMax then redis.call('ZINCRBY', COUNTS, count, field) else redis.call('HINCRBY', COUNTS, field, count) end
end
if keptMax then redis.call('ZREMRANGEBYRANK', COUNTS, 0, -keptMax - 1) end
redis.call('EXPIRE', COUNTS, seconds)
return 1
