-- Wakes the worker of a waiter: a permit may be free for it. Its worker polls as well, so a lost
-- message delays only.
local function notifyWaiter(member) redis.call('PUBLISH', WAKE_UP_CHANNEL, STATE .. ' ' .. member) end
-- Returns how many of the first `count` waiters there are.
local function notifyFirst(count)
  local waiters = redis.call('ZRANGE', WAITERS, 0, count - 1)
  for _, member in ipairs(waiters) do notifyWaiter(member) end
  return #waiters
end
