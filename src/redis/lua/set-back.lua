--[[ If the clock was set back, entries of a log that are later than `latest` (a score, as text)
     were made before now: from here on they count as of `latest`. So a window never has too much
     room, and has too little for the length of one window at most.
     Returns by how much the last entry was later; nil if the clock was not set back. ]]
local function followSetBack(log, latest)
  local last = redis.call('ZREVRANGE', log, 0, 0, 'WITHSCORES')[2]
  if not last or tonumber(last) <= tonumber(latest) then return nil end
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', log, '(' .. latest, '+inf')) do redis.call('ZADD', log, latest, member) end
  return tonumber(last) - tonumber(latest)
end
