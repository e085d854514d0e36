--- @include "./rules.lua"
--- @include "./state.lua"
--- @include "./fair.lua"
--- @include "./members.lua"
--- @include "./slots.lua"
--- @include "./plan.lua"
--- @include "./dequeue-expired.lua"
--- @include "./notify.lua"
--- @include "./schedule.lua"
--- @include "./queued-slot.lua"
--- @include "./evict.lua"
--- @include "./key-life.lua"
--- @include "./forecast.lua"
--- @include "./follow-set-back.lua"
-- Joins calls to the wait queue of a cap. The queue is a sorted set of members by their fair tag;
-- the smallest tag gets the next permit. A call's place is its position there, and its slot the
-- time at which that place is expected to get a permit (`schedule.lua`, and `plan.lua` on a scarce
-- cap).

-- Reply of a refusal: reason, no tag, and the milliseconds after which a call may fit.
local function refuse(reason, untilMs)
  if capFollowsSetBack() then untilMs = math.min(untilMs, widest) end
  return {reason, '0', math.ceil(untilMs)}
end

-- Refuses a call whose slot is too late for it.
local function refuseLate(retryAt, isShareBound)
  return refuse(isShareBound and 'share' or state.closed > now and 'closed' or 'cap', retryAt - now)
end

-- Forgets shares that have nothing queued and whose next call starts at the virtual time, as the
-- next call of a new share does.
local function forgetServed(virtual)
  local flat, values = redis.call('HGETALL', FAIR), {}
  for index = 1, #flat, 2 do values[flat[index]] = tonumber(flat[index + 1]) end
  for field, value in pairs(values) do
    local other = string.match(field, '^f:(.*)')
    if other and value <= virtual and (values[queuedField(other)] or 0) <= 0 then
      redis.call('HDEL', FAIR, field, queuedField(other))
    end
  end
end

-- Whether a call that starts at its slot is answered by its deadline. A queue at its limit consists
-- of calls that are served right before their deadlines: without the allowance half of them would
-- miss theirs by milliseconds.
local function isAnsweredInTime(slot, deadline)
  return slot + 2 * state.serviceMs + math.max(FORECAST_SLACK_MS, FORECAST_SLACK_PART * (slot - now)) <= deadline
end

local function recordDemand(share)
  redis.call('ZREMRANGEBYSCORE', DEMAND, '-inf', score(now - DEMAND_WINDOW_MS))
  redis.call('ZADD', DEMAND, score(now), share)
  redis.call('PEXPIRE', DEMAND, DEMAND_WINDOW_MS)
  if state.lastAsker == share then return end
  if state.lastAsker then state.askersChangedAt = now end
  redis.call('HSET', STATE, 'lastAsker', share, 'askersChangedAt', score(state.askersChangedAt))
  state.lastAsker = share
end

-- The queue as a call of the share finds it, without expired calls: of each group on its path the
-- start of its next call and how many it has in the queue. Virtual time begins anew if nothing
-- waits.
local function readQueue(path)
  local queue = { length = redis.call('ZCARD', QUEUE), virtual = 0, starts = {}, ownCounts = {}, asyncCount = 0, seq = 1 }
  if queue.length > 0 then queue.length = queue.length - dequeueExpired() end
  queue.busySince = now
  if queue.length == 0 and redis.call('ZCARD', WAITERS) == 0 then
    redis.call('DEL', FAIR)
    for level = 1, #path do queue.starts[level], queue.ownCounts[level] = 0, 0 end
    return queue
  end
  local names = {'now', 'busySince', 'async', 'seq'}
  for _, group in ipairs(path) do names[#names + 1], names[#names + 2] = startField(group), queuedField(group) end
  local fair = redis.call('HMGET', FAIR, unpack(names))
  queue.virtual = tonumber(fair[1] or 0)
  queue.asyncCount, queue.seq = math.max(0, tonumber(fair[3] or 0)), tonumber(fair[4] or 0) + 1
  for level = 1, #path do
    queue.starts[level] = math.max(queue.virtual, tonumber(fair[3 + 2 * level] or 0))
    queue.ownCounts[level] = math.max(0, tonumber(fair[4 + 2 * level] or 0))
  end
  if queue.length > 0 then queue.busySince = tonumber(fair[2] or now) end
  return queue
end

-- Finds the slot of a call that has `ahead` calls of the queue before it. Returns:
-- 1. its slot,
-- 2. the calls that would be too late behind it, as arguments of `evict`,
-- 3. a refusal, if it is too late itself,
-- 4. the slot of `identical` (a queued call whose answer it could share), if that slot is no later.
--    The refusal is then about that slot, and the caller ignores the first two values.
local function findSlot(call, queue, ahead, identical)
  local member, deadline, length = call.member, call.deadline, queue.length
  -- At least the synchronous calls before it are granted first; without shares that settles most
  -- refusals at once.
  if not hasShares then
    if slotAt(length) <= now then return now, {}, nil, identical and now end
    local earliest = slotAt(isAsync(member) and ahead or math.max(0, ahead - queue.asyncCount))
    if not identical and earliest > now and not isAnsweredInTime(earliest, deadline) then
      return earliest, {}, refuseLate(earliest, false)
    end
  end

  local slot, late, refusal, identicalSlot = nil, {}, nil, nil
  -- With a free slot it may try, however long requests took of late: else a slow hour would never
  -- end.
  local function isLate(at) return at > now and not isAnsweredInTime(at, deadline) end
  local function takeSlot(at, ifQuietAt, isShareBound)
    slot, refusal = at, isLate(at) and refuseLate(ifQuietAt, isShareBound) or nil
  end
  -- If the identical call waits for its own share, this caller gets the reason `cap`, with the real
  -- slot of that call.
  local function shareSlot(at, ifQuietAt, isShareBound)
    local isOwnShare = isShareBound and shareOf(identical) == call.share
    identicalSlot, refusal = at, isLate(at) and refuseLate(isOwnShare and ifQuietAt or at, isOwnShare) or nil
  end
  if not takePlanningTurn(length) then
    takeSlot(estimateSlot(member, ahead, queue.ownCounts, queue.asyncCount))
    if not identical then return slot, late, refusal, nil end
    local at, ifQuietAt, isShareBound = queuedSlot(identical, redis.call('ZRANK', QUEUE, identical))
    if at <= slot then shareSlot(at, ifQuietAt, isShareBound) end
    return slot, late, refusal, identicalSlot
  end
  local members, deadlines = redis.call('ZRANGE', QUEUE, 0, -1), readDeadlines()
  table.insert(members, ahead + 1, member)
  schedule(members, function(other, at, ifQuietAt, isShareBound)
    if other == member then
      takeSlot(at, ifQuietAt, isShareBound)
      if refusal then return nil end
      return true
    end
    if isTooLate(deadlines[other], at) then
      late[#late + 1] = { other, ifQuietAt, isShareBound }
      return false
    end
    if other == identical and at <= (slot or at) then
      shareSlot(at, ifQuietAt, isShareBound)
      return nil
    end
    return true
  end)
  return slot or now, late, refusal, identicalSlot
end

local function knownPlace(member, rank)
  return {'own', redis.call('ZSCORE', QUEUE, member), queuedWaitMs(member, rank)}
end

-- Queues a call, or refuses it. A call with a tag had a place before: it goes before calls that
-- start now, and keeps its order among others that had a place, even if virtual time began anew. It
-- has counted as demand, and no length of the queue refuses it, because the queue had a place for
-- it. A call that `waits` sends a request of its own: it shares only the place of a call that is
-- still queued.
local function join(call)
  local member, share, weight, deadline, coalesced = call.member, call.share, call.weight, call.deadline, call.coalesced
  if hasShares and not call.tag then recordDemand(share) end
  local path = pathOf(share)
  local queue = readQueue(path)
  local length = queue.length
  local knownRank = length > 0 and redis.call('ZRANK', QUEUE, member)
  -- The command is sent again if its acknowledgement was lost.
  if knownRank then return knownPlace(member, knownRank) end
  local whole, tagText = tagAfter(queue.virtual, math.max(unpack(queue.starts)), queue.seq)
  if call.tag then
    local tag = call.tag < queue.virtual and call.tag or queue.virtual - 1 + call.tag % 1
    tagText = string.format('%.17g', tag)
  end

  local identical = coalesced and redis.call('GET', coalesced)
  local rank = identical and redis.call('ZRANK', QUEUE, identical)
  -- Its request is sent, or about to be.
  if identical and not rank and identical ~= member and not call.waits then return {'follower', tagText, 0} end

  local ahead = length > 0 and redis.call('ZCOUNT', QUEUE, '-inf', tagText) or 0
  local slot, late, refusal, identicalSlot = findSlot(call, queue, ahead, rank and identical)
  if refusal then return refusal end
  if identicalSlot then
    return {'follower', call.waits and redis.call('ZSCORE', QUEUE, identical) or tagText, math.ceil(identicalSlot - now)}
  end

  local congestion = congestionMs(redis.call('ZCARD', LEASES), ahead)
  if slot <= now then congestion = math.max(congestion, drainMs(ahead, queue.busySince)) end
  local isAsyncFull = isAsync(member) and queue.asyncCount >= QUEUE_LENGTH_MAX * ASYNC_PART_MAX
  local isFull = length >= QUEUE_LENGTH_MAX or isAsyncFull or (slot <= now and congestion > CONGESTION_MS_MAX)
  if isFull and not call.tag then
    -- Every call leaves the queue by its deadline: it is not as long as this for longer than a
    -- caller would wait.
    return refuse('overloaded', math.max(1000, math.min(congestion / 2, deadline - now)))
  end

  redis.call('ZADD', QUEUE, tagText, member)
  redis.call('ZADD', QUEUE_DEADLINES, score(deadline), member)
  local fields = {'seq', queue.seq}
  for level, group in ipairs(path) do
    if not call.tag then
      -- The share's next call starts after this call. The start of a wider group grows from its own
      -- start, so a call that its share alone held back does not delay the other shares of the
      -- group.
      local start = (level == #path and whole or queue.starts[level]) + COST / weight / widthOf(path, level)
      fields[#fields + 1], fields[#fields + 2] = startField(group), tostring(start)
    end
    fields[#fields + 1], fields[#fields + 2] = queuedField(group), queue.ownCounts[level] + 1
  end
  redis.call('HSET', FAIR, unpack(fields))
  if isAsync(member) then redis.call('HINCRBY', FAIR, 'async', 1) end
  if length == 0 then redis.call('HSET', FAIR, 'busySince', score(now)) end
  if length > 1000 and redis.call('HLEN', FAIR) > 8000 then forgetServed(queue.virtual) end
  evict(late)
  keepAlive(length == 0, {FAIR, QUEUE, QUEUE_DEADLINES})
  if coalesced then redis.call('SET', coalesced, member, 'PX', math.max(1, math.ceil(deadline - now))) end
  return {rank and 'ahead' or 'own', tagText, math.ceil(math.max(slot - now, congestion))}
end
