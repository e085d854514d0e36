--[[ Where the clock was set back, what a log holds of later than `latest` (a score, as text) was logged before now: it
     counts as of `latest` from here on. So a window never has too much room, and too little for one window at most.
     Returns by how much the last entry was later; nil where the clock was not set back. ]]
local function followSetBack(log, latest)
  local last = redis.call('ZREVRANGE', log, 0, 0, 'WITHSCORES')[2]
  if not last or tonumber(last) <= tonumber(latest) then return nil end
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', log, '(' .. latest, '+inf')) do redis.call('ZADD', log, latest, member) end
  return tonumber(last) - tonumber(latest)
end
