--[[ Puts back grants from before Redis lost its memory; a second time does nothing.
     Input:  ARGV[1] unused clock  ARGV[2…] time (ms) and number of grants, in turn
     Output: 1 when it was done now ]]
--- @include "./include/keys.lua"
if redis.call('HGET', STATE, 'backfilled') == '1' then return 0 end
for index = 2, #ARGV, 2 do
  local at, granted = ARGV[index], tonumber(ARGV[index + 1])
  for number = 1, granted do redis.call('ZADD', LOG, at, 'restored|' .. at .. '|' .. number) end
end
redis.call('HSET', STATE, 'backfilled', '1')
return 1
