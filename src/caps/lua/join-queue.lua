--[[ Queues a call if its permit is expected before its deadline: computes its fair tag and from that its slot.
     Input:  KEYS[10] flight (may be absent)  ARGV[1] clock, the rules, then member, weight, deadline (ms)
     Output: 'uninitialised'; or 'cap', 'closed', 'overloaded' (refused), 'ok', 'follow' (shares another call's answer),
             then the tag, the job priority, ms until its slot, calls before it, 1 when tags are far from their base ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./include/keys.lua"
--- @include "./include/rules.lua"
--- @include "./include/state.lua"
--- @include "./include/slots.lua"
--- @include "./include/dequeue-expired.lua"
--- @include "./include/share.lua"
--- @include "./include/key-life.lua"
local FLIGHT, member, weight, deadline = KEYS[10], ARGV[own], tonumber(ARGV[own + 1]), tonumber(ARGV[own + 2])
local account = accountOf(member)
if not state.initialisedAt then return {'uninitialised'} end

-- Accounts that have nothing queued and no lead over the others are as good as new.
local function forgetServed(virtual)
  local flat, values = redis.call('HGETALL', FAIR), {}
  for index = 1, #flat, 2 do values[flat[index]] = tonumber(flat[index + 1]) end
  for field, value in pairs(values) do
    local other = string.match(field, '^f:(.*)')
    if other and value <= virtual and (values[waitingField(other)] or 0) <= 0 then
      redis.call('HDEL', FAIR, field, waitingField(other))
    end
  end
end

-- When a call that starts at its slot is answered at the latest: a queue at its limit consists of calls that are served
-- right before their deadlines, and without this allowance half of them would miss theirs by milliseconds.
local function answeredBy(slot)
  return slot + 2 * state.serviceMs + math.max(LATE_MS, LATE_SHARE * (slot - now))
end

if isScarce then
  redis.call('ZREMRANGEBYSCORE', DEMAND, '-inf', score(now - DEMAND_WINDOW_MS))
  redis.call('ZADD', DEMAND, score(now), account)
  redis.call('PEXPIRE', DEMAND, DEMAND_WINDOW_MS)
end
local length = redis.call('ZCARD', QUEUE)
if length > 0 then length = length - dequeueExpired() end
local virtual, base, start, busySince, waiting = 0, 0, 0, now, 0
if length == 0 and redis.call('ZCARD', WAITERS) == 0 then
  redis.call('DEL', FAIR)
else
  local fair = redis.call('HMGET', FAIR, 'now', 'base', 'busySince', startField(account), waitingField(account))
  virtual, base, start = tonumber(fair[1] or 0), tonumber(fair[2] or 0), tonumber(fair[4] or 0)
  waiting = math.max(0, tonumber(fair[5] or 0))
  if length > 0 then busySince = tonumber(fair[3] or now) end
end
local tag = math.max(virtual, start)
local priority = math.max(1, math.min(PRIORITY_MAX, math.floor(tag - base) + 1))
local isFarFromBase = tag - base > TAG_SPAN_MAX and 1 or 0

local leader = FLIGHT and redis.call('GET', FLIGHT)
if leader then
  -- It waits as long as the call whose answer it shares.
  local rank = redis.call('ZRANK', QUEUE, leader)
  local slot = rank and slotAt(rank) or now
  if slot > now and answeredBy(slot) > deadline then
    return {state.closed > now and 'closed' or 'cap', '0', 0, math.ceil(slot - now), rank, 0}
  end
  return {'follow', tostring(tag), priority, math.ceil(slot - now), rank or 0, isFarFromBase}
end

local ahead = length > 0 and redis.call('ZCOUNT', QUEUE, '-inf', tag) or 0
if isScarce and ahead > 0 then
  -- Calls of accounts that have had their share are passed over: they are not before this one whatever their tags.
  local isBlocked = {}
  for _, other in ipairs(redis.call('ZRANGE', QUEUE, 0, math.min(ahead, 200) - 1)) do
    local theirs = accountOf(other)
    if isBlocked[theirs] == nil then isBlocked[theirs] = theirs ~= account and shareSpentUntil(theirs, 0) > now end
    if isBlocked[theirs] then ahead = ahead - 1 end
  end
end
local slot = math.max(slotAt(ahead), shareSpentUntil(account, waiting))
-- With a free slot it may try, however long requests took of late: else a slow hour would never end.
if slot > now and answeredBy(slot) > deadline then
  return {state.closed > now and 'closed' or 'cap', '0', 0, math.ceil(slot - now), ahead, 0}
end

local busy = redis.call('ZCARD', LEASES) + ahead + 1 - concurrency
local congestion = busy > 0 and state.serviceMs * busy / concurrency or 0
local isDrainKnown = ahead >= DRAIN_LENGTH_MIN and not isScarce and now - busySince > DRAIN_MS and widest >= DRAIN_MS
if slot <= now and isDrainKnown then
  -- How fast the queue drains, whatever slows it: connections, or workers that are short of CPU.
  local drained = redis.call('ZCOUNT', LOG, score(now - DRAIN_MS), '+inf')
  congestion = math.max(congestion, ahead / math.max(1, drained) * DRAIN_MS)
end
if length >= QUEUE_LENGTH_MAX or (slot <= now and congestion > CONGESTION_MS_MAX) then
  -- Every call leaves the queue by its deadline: it is not as long as this for longer than a caller would wait.
  return {'overloaded', '0', 0, math.ceil(math.max(1000, math.min(congestion / 2, deadline - now))), ahead, 0}
end

redis.call('ZADD', QUEUE, tag, member)
redis.call('ZADD', QUEUE_DEADLINES, score(deadline), member)
redis.call('HSET', FAIR, startField(account), tostring(tag + COST / weight), waitingField(account), waiting + 1)
if length == 0 then redis.call('HSET', FAIR, 'busySince', score(now)) end
if length > 1000 and redis.call('HLEN', FAIR) > 8000 then forgetServed(virtual) end
keepAlive(length == 0, {FAIR, QUEUE, QUEUE_DEADLINES})
if FLIGHT then redis.call('SET', FLIGHT, member, 'PX', math.max(1, math.ceil(deadline - now))) end
return {'ok', tostring(tag), priority, math.ceil(math.max(slot - now, congestion)), ahead, isFarFromBase}
