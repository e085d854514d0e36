--- @include "./dequeue.lua"
-- Takes calls past their deadline out of the queue; returns how many.
local function dequeueExpired()
  local expired = redis.call('ZRANGEBYSCORE', QUEUE_DEADLINES, '-inf', score(now), 'LIMIT', 0, 1000)
  return #expired > 0 and dequeue(expired) or 0
end
