--- @include "./state.lua"
--- @include "./dequeue.lua"
--- @include "./notify.lua"
--- @include "./schedule.lua"
-- Takes a call that can no longer be granted before its deadline out of the queue: its worker hears of it at once, with
-- when to come again, instead of waiting for the deadline. A time below 0: the call waited for its share alone.
local function evict(member, retryAt, isShareBound)
  dequeue({member})
  redis.call('ZREM', WAITERS, member)
  redis.call('ZREM', WAITER_EXPIRIES, member)
  redis.call('ZADD', EVICTED, score(isShareBound and -retryAt or retryAt), member)
  redis.call('PEXPIRE', EVICTED, EVICTED_TTL_MS)
  notifyWaiter(member)
end

-- Deadlines of the calls in the queue.
local function readDeadlines()
  local flat, deadlines = redis.call('ZRANGE', QUEUE_DEADLINES, 0, -1, 'WITHSCORES'), {}
  for index = 1, #flat, 2 do deadlines[flat[index]] = tonumber(flat[index + 1]) end
  return deadlines
end

-- Whether a call that is granted at that time is not answered by its deadline.
local function isTooLate(deadline, at)
  return at > now and deadline ~= nil and at + state.serviceMs + REPLY_MS > deadline
end

-- Planning takes time in proportion to the queue: a long one is planned a few times a second, not at each call.
local function takePlanningTurn(length)
  if length <= PLANNED_LENGTH_MAX then return true end
  if math.abs(now - state.plannedAt) < PLAN_EVERY_MS then return false end
  state.plannedAt = now
  redis.call('HSET', STATE, 'plannedAt', score(now))
  return true
end

-- Evicts the queued calls whose slots were taken: by an upstream that allows less, by a repeated request.
local function evictTooLate()
  local deadlines = readDeadlines()
  local late = {}
  schedule(redis.call('ZRANGE', QUEUE, 0, -1), function(member, at, ifQuietAt, isShareBound)
    if not isTooLate(deadlines[member], at) then return true end
    -- The poll of its worker finds that the upstream is closed for longer than the call may wait, and says that.
    if deadlines[member] < state.closed then return false end
    late[#late + 1] = { member, ifQuietAt, isShareBound }
    return false
  end)
  for _, entry in ipairs(late) do evict(unpack(entry)) end
end
