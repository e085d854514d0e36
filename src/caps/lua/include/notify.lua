-- Wakes the worker of a waiter: a permit may be free for it. Its worker polls as well, so a lost message delays only.
local function notifyWaiter(member) redis.call('PUBLISH', WAKE_UP_CHANNEL, STATE .. ' ' .. member) end
local function notifyFirst(count)
  for _, member in ipairs(redis.call('ZRANGE', WAITERS, 0, count - 1)) do notifyWaiter(member) end
end
