--- @include "./state.lua"
--- @include "./dequeue.lua"
--- @include "./notify.lua"
--- @include "./schedule.lua"
-- Takes calls that can no longer be granted before their deadlines out of the queue: their workers
-- hear of it at once, with when to come again, instead of waiting for the deadlines. `late` has of
-- each call the member, when it may come again, and whether it waited for its share alone, which
-- EVICTED keeps as a time below 0.
local function evict(late)
  if #late == 0 then return end
  local members, evicted = {}, {}
  for index, entry in ipairs(late) do
    local member, retryAt, isShareBound = unpack(entry)
    members[index] = member
    evicted[2 * index - 1], evicted[2 * index] = score(isShareBound and -retryAt or retryAt), member
  end
  dequeue(members)
  redis.call('ZREM', WAITERS, unpack(members))
  redis.call('ZREM', WAITER_EXPIRIES, unpack(members))
  redis.call('ZADD', EVICTED, unpack(evicted))
  redis.call('PEXPIRE', EVICTED, EVICTED_TTL_MS)
  for _, member in ipairs(members) do notifyWaiter(member) end
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

-- Planning takes time in proportion to the queue: a long queue is planned a few times a second, not
-- at each call.
local function takePlanningTurn(length)
  if length <= PLANNED_LENGTH_MAX then return true end
  if math.abs(now - state.plannedAt) < PLAN_EVERY_MS then return false end
  state.plannedAt = now
  redis.call('HSET', STATE, 'plannedAt', score(now))
  return true
end

-- Evicts the queued calls whose slots are too late by now, because the upstream allows less or
-- another share has demand.
local function evictTooLate()
  local deadlines = readDeadlines()
  local late = {}
  schedule(redis.call('ZRANGE', QUEUE, 0, -1), function(member, at, ifQuietAt, isShareBound)
    if not isTooLate(deadlines[member], at) then return true end
    late[#late + 1] = { member, ifQuietAt, isShareBound }
    return false
  end)
  evict(late)
end
