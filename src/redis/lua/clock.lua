--[[ The time of a script: ARGV[1] in milliseconds, or Redis' own clock if ARGV[1] is empty. Only
     tests hand in a time.
     Redis counts microseconds, so `now` has three decimals. ]]
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + time[2] / 1000
end
-- Formats a time as the score of a sorted set. Lua's tostring() would round it to 14 digits.
local function score(value) return string.format('%.3f', value) end
