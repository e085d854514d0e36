--[[ Releases permits and grants new ones to the waiters, of all workers, in the order of `schedule`: the polling worker's
     own get theirs in the reply, the workers of others are woken up.
     Input:  KEYS[11] the worker's last reply
             ARGV[1] clock, the rules, then lease (ms), mean service time (ms) and number of released permits, number of
             waiters, how much later than the grant it is logged (ms; above 0 for a worker far from Redis), unique name of
             the poll, the released permits, then member and tag of each waiter
             A tag below 0: it has no place in the queue. It is granted where there is room for all, else it must join the queue.
     Output: 'uninitialised'; 'needs-backfill'; or 'ok', ms until the rates let the next of the waiters go (0: when
             another request ends), ms until the upstream opens again, number of evicted waiters, how many more requests
             there is room for, member and ms until it may come again of each evicted one (below 0: it waited for its share
             alone), then member and permit of each grant, or member and 'join' of each that must join the queue; where
             every waiter has a permit in place of all that EVERY_WAITER and the number of the first permit: those of the
             others are the numbers after it, in the order of the waiters ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./include/keys.lua"
--- @include "./include/rules.lua"
--- @include "./include/state.lua"
--- @include "./include/lost-past.lua"
--- @include "./include/members.lua"
--- @include "./include/slots.lua"
--- @include "./include/dequeue.lua"
--- @include "./include/notify.lua"
--- @include "./include/schedule.lua"
--- @include "./include/evict.lua"
--- @include "./include/key-life.lua"
--- @include "./include/release-permits.lua"
--- @include "./include/follow-set-back.lua"
local leaseMs, meanMs = tonumber(ARGV[afterRules]), tonumber(ARGV[afterRules + 1])
local releasedCount, waiterCount = tonumber(ARGV[afterRules + 2]), tonumber(ARGV[afterRules + 3])
local logLaterMs = tonumber(ARGV[afterRules + 4])
local LAST_REPLY, pollName = KEYS[11], ARGV[afterRules + 5]
local poll = pollName .. ' '
local released, firstWaiter = {}, afterRules + 6 + releasedCount
for index = afterRules + 6, firstWaiter - 1 do released[#released + 1] = ARGV[index] end

local tagOf, waiters, placed, unplaced, latestTag = {}, {}, {}, {}, 0
for index = 1, waiterCount do
  local member, tag = ARGV[firstWaiter + 2 * index - 2], tonumber(ARGV[firstWaiter + 2 * index - 1])
  tagOf[member] = tag
  waiters[index] = member
  local list = tag < 0 and unplaced or placed
  list[#list + 1] = member
end
local function addMustJoin(reply)
  for _, member in ipairs(unplaced) do
    reply[#reply + 1] = member
    reply[#reply + 1] = 'join'
  end
  return reply
end

if not state.initialisedAt then return {'uninitialised'} end
-- A worker that lost its connection sends its poll again and gets the same reply: nobody else can use or give back what was
-- granted.
if redis.call('GETRANGE', LAST_REPLY, 0, #poll - 1) == poll then
  return cmsgpack.unpack(string.sub(redis.call('GET', LAST_REPLY), #poll + 1))
end
if needsBackfill() then return {'needs-backfill'} end
if isPastMissing() then
  releasePermits(released, meanMs)
  return addMustJoin({'ok', BACKFILL_AFTER_MS, 0, 0, 0})
end
releasePermits(released, meanMs)
if state.ramp then state.ramp = tonumber(redis.call('HGET', STATE, 'ramp')) end
redis.call('ZREMRANGEBYSCORE', LOG, '-inf', score(now - widest))
redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', score(now))
local RETRY_IN, EVICTIONS, ROOM = 2, 4, 5
local reply = {'ok', 0, math.max(0, math.ceil(state.closed - now)), 0, 0}
local function remembered()
  if #reply > ROOM then redis.call('SET', LAST_REPLY, poll .. cmsgpack.pack(reply), 'PX', POLL_REPLY_TTL_MS) end
  return reply
end

-- What ended here, or was free for a call that is evicted now, goes to waiters of other workers: unless told, they find it
-- only with their next polls.
local function passOn()
  local count = math.min(#released + reply[EVICTIONS], freeNow())
  if count > 0 then notifyFirst(count) end
  return remembered()
end

if #placed > 0 and redis.call('EXISTS', EVICTED) == 1 then
  local retryAt, kept = redis.call('ZMSCORE', EVICTED, unpack(placed)), {}
  for index, member in ipairs(placed) do
    if retryAt[index] then
      redis.call('ZREM', EVICTED, member)
      reply[EVICTIONS] = reply[EVICTIONS] + 1
      reply[#reply + 1] = member
      local at = tonumber(retryAt[index])
      reply[#reply + 1] = math.max(1, math.ceil(math.abs(at) - now)) * (at < 0 and -1 or 1)
      tagOf[member] = nil
    else
      kept[#kept + 1] = member
    end
  end
  placed = kept
end
if #placed + #unplaced == 0 then return passOn() end

local queued = redis.call('ZCARD', QUEUE)
-- Grants members; returns how many of them had not been in the queue: repeated requests, probes, calls without a place.
local function grant(granted)
  local unqueued = #granted - (queued > 0 and dequeue(granted) or 0)
  local number = redis.call('HINCRBY', STATE, 'permits', #granted) - #granted
  -- Shares are counted by the member, most of an entry's size. Long windows have it too: their cap may be made scarce.
  local isNamed = isScarce or widest > KEPT_WINDOW_MS_MIN
  local isOfAll = not isNamed and #granted == waiterCount
  local loggedAt, leasedUntil = score(now + logLaterMs), score(now + leaseMs)
  local logged, leased = {}, {}
  for index, member in ipairs(granted) do
    local permit = (isNamed and member .. '|' or '') .. pollName .. '.' .. (number + index)
    local offset = 2 * index
    logged[offset - 1], logged[offset] = loggedAt, permit
    leased[offset - 1], leased[offset] = leasedUntil, permit
    if not isOfAll then
      reply[#reply + 1] = member
      reply[#reply + 1] = permit
    end
    latestTag = math.max(latestTag, tagOf[member])
  end
  if isOfAll then
    reply[#reply + 1] = EVERY_WAITER
    reply[#reply + 1] = tostring(number + 1)
  end
  -- Redis deletes a set with its last member, and its expiry too: without a new one, the lease of a dead worker would stay.
  local isFirst = redis.call('EXISTS', LOG, LEASES) < 2
  redis.call('ZADD', LOG, unpack(logged))
  redis.call('ZADD', LEASES, unpack(leased))
  if state.leftUntil > now then state.left = redis.call('HINCRBY', STATE, 'left', -#granted) end
  local whole = math.floor(latestTag)
  -- Repeated requests and followers are in no queue: alone they would make the key anew, without a lifetime.
  if unqueued < #granted and whole > tonumber(redis.call('HGET', FAIR, 'now') or 0) then redis.call('HSET', FAIR, 'now', tostring(whole)) end
  keepAlive(isFirst, {LOG, STATE, LEASES})
  return unqueued
end

-- A repeated request, or a worker that polled earlier, may have taken the slot of a queued call.
local function evictWhoseSlotsWereTaken()
  local length = redis.call('ZCARD', QUEUE)
  if length > 0 and takePlanningTurn(length) then evictTooLate() end
end

local function concat(first, others)
  for _, member in ipairs(others) do first[#first + 1] = member end
  return first
end

-- Nothing else waits and there is room for all: no set of waiters need be kept. A call without a place leaves room for
-- every call that has one.
if not isScarce and redis.call('ZCARD', WAITERS) == 0 then
  local free, granted, others = freeNow(), #placed, queued
  if #unplaced > 0 and queued > 0 and granted > 0 then
    for _, tag in ipairs(redis.call('ZMSCORE', QUEUE, unpack(placed))) do
      if tag then others = others - 1 end
    end
  end
  if #unplaced > 0 and free >= granted + #unplaced + others then
    placed = #placed + #unplaced == waiterCount and waiters or concat(placed, unplaced)
    granted, unplaced = #placed, {}
  end
  if granted > 0 and free >= granted then
    local unqueued = grant(placed)
    local left = queued - (granted - unqueued)
    reply[ROOM] = math.max(0, free - granted - left)
    if unqueued > 0 and free - granted < left then evictWhoseSlotsWereTaken() end
    addMustJoin(reply)
    return remembered()
  end
end
addMustJoin(reply)
if #placed == 0 then return passOn() end

for _, member in ipairs(redis.call('ZRANGEBYSCORE', WAITER_EXPIRIES, '-inf', score(now), 'LIMIT', 0, 1000)) do
  redis.call('ZREM', WAITER_EXPIRIES, member)
  redis.call('ZREM', WAITERS, member)
end
local byTag, byExpiry, expiry = {}, {}, score(now + WAITER_TTL_MS)
for index, member in ipairs(placed) do
  byTag[2 * index - 1], byTag[2 * index] = string.format('%.17g', tagOf[member]), member
  byExpiry[2 * index - 1], byExpiry[2 * index] = expiry, member
end
redis.call('ZADD', WAITERS, unpack(byTag))
redis.call('ZADD', WAITER_EXPIRIES, unpack(byExpiry))
keepAlive(true, {WAITERS, WAITER_EXPIRIES})

local freeLeases = concurrencyNow() - redis.call('ZCARD', LEASES)
local granted, waitMs, lastGranted = {}, 0, nil
-- Waiters of other workers that are woken up are as good as granted.
schedule(redis.call('ZRANGE', WAITERS, 0, WAITERS_PLANNED_MAX - 1), function(member, at)
  if at > now then
    if not tagOf[member] then return true end
    waitMs = math.ceil(at - now)
    return nil
  end
  if freeLeases <= 0 then return nil end
  freeLeases = freeLeases - 1
  if tagOf[member] then granted[#granted + 1] = member else notifyWaiter(member) end
  lastGranted = member
  return true
end)
reply[RETRY_IN] = waitMs
if (waitMs > 0 or #granted == 0) and capFollowsSetBack() then reply[RETRY_IN] = 1 end
local mayBeLate = isScarce and waitMs > 0
if #granted > 0 then
  redis.call('ZREM', WAITERS, unpack(granted))
  redis.call('ZREM', WAITER_EXPIRIES, unpack(granted))
  local unqueued = grant(granted)
  if isAsync(lastGranted) ~= state.lastWasAsync then
    state.lastWasAsync = isAsync(lastGranted)
    redis.call('HSET', STATE, 'lastWasAsync', state.lastWasAsync and '1' or '0')
  end
  mayBeLate = mayBeLate or unqueued > 0
end
if mayBeLate then evictWhoseSlotsWereTaken() end
return remembered()
