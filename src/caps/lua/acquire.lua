--[[ Releases permits and grants new permits to the waiters, of all workers, in the order of
     `schedule`. The waiters of the polling worker get their permits in the reply, and the workers
     of the other waiters are woken up. A waiter that is not in the queue joins it, unless there is
     room for it and for all calls of the queue.
     Input:  KEYS[11] the worker's last reply  KEYS[12…] keys of coalesced calls
             ARGV[1] clock, the rules, then lease (ms), mean service time of the released permits
                     (ms), their number, number of released permits under which nothing was sent,
                     number of waiters, how much later than the grant it is logged (ms; above 0 for
                     a worker far from Redis), permits wanted ahead for calls that come later,
                     unique name of the poll, both kinds of released permits, then of each waiter
                     member, tag (empty: it never had a place), weight, deadline (ms) and which of
                     the keys of coalesced calls is its own (0: none)
     Output: 'uninitialised'; 'needs-backfill'; or 'ok', ms until the rates let the next of the
             waiters go (0: when another request ends), how many more requests there is room for, a
             list of member and permit of each grant; a list of member and tag of each waiter that
             joined the queue; a list of member, reason, ms until it may come again and 1 (it had a
             place, and was evicted) or 0 of each waiter that is refused; a list of permits ahead ]]
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
--- @include "./include/follow-set-back.lua"
--- @include "./include/join.lua"
--- @include "./include/release-permits.lua"
local leaseMs, meanMs = tonumber(ARGV[afterRules]), tonumber(ARGV[afterRules + 1])
local releasedCount, unusedCount = tonumber(ARGV[afterRules + 2]), tonumber(ARGV[afterRules + 3])
local waiterCount, logLaterMs = tonumber(ARGV[afterRules + 4]), tonumber(ARGV[afterRules + 5])
local aheadMax = tonumber(ARGV[afterRules + 6])
local LAST_REPLY, pollName = KEYS[11], ARGV[afterRules + 7]
local poll = pollName .. ' '
local firstUnused = afterRules + 8 + releasedCount
local released, unused, firstWaiter = {}, {}, firstUnused + unusedCount
for index = afterRules + 8, firstUnused - 1 do released[#released + 1] = ARGV[index] end
for index = firstUnused, firstWaiter - 1 do unused[#unused + 1] = ARGV[index] end

if not state.initialisedAt then return {'uninitialised'} end
-- A worker that lost its connection sends its poll again and gets the same reply: nobody else can
-- use or give back what was granted.
if redis.call('GETRANGE', LAST_REPLY, 0, #poll - 1) == poll then
  return cmsgpack.unpack(string.sub(redis.call('GET', LAST_REPLY), #poll + 1))
end
if needsBackfill() then return {'needs-backfill'} end
releasePermits(released, meanMs)
state.left = state.left + takeBackPermits(unused)
-- The released permits may have let the ramp grow.
if state.ramp then state.ramp = tonumber(redis.call('HGET', STATE, 'ramp')) end
redis.call('ZREMRANGEBYSCORE', LOG, '-inf', score(now - widest))
redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', score(now))
local RETRY_IN, ROOM = 2, 3
local permits, joined, refusals, permitsAhead, evictedCount = {}, {}, {}, {}, 0
local reply = {'ok', 0, 0, permits, joined, refusals, permitsAhead}
local function remembered()
  if #permits + #joined + #refusals > 0 then
    redis.call('SET', LAST_REPLY, poll .. cmsgpack.pack(reply), 'PX', POLL_REPLY_TTL_MS)
  end
  return reply
end

-- ZMSCORE answers false for a member that is not there.
local function numberOrNil(score) return score and tonumber(score) or nil end

-- The waiters that have a place, with its tag in `tagOf`, and the others.
local waiters, argumentOf, placed, unplaced, tagOf = {}, {}, {}, {}, {}
for index = 1, waiterCount do
  local argument = firstWaiter + 5 * (index - 1)
  waiters[index] = ARGV[argument]
  argumentOf[waiters[index]] = argument
end
local queued = redis.call('ZCARD', QUEUE)
local tags = queued > 0 and waiterCount > 0 and redis.call('ZMSCORE', QUEUE, unpack(waiters)) or {}
for index, member in ipairs(waiters) do
  tagOf[member] = numberOrNil(tags[index])
  local list = tagOf[member] and placed or unplaced
  list[#list + 1] = member
end

local function grant(granted, ahead)
  if queued > 0 then dequeue(granted) end
  local count = #granted + (ahead or 0)
  local number = redis.call('HINCRBY', STATE, 'permits', count) - count
  -- Shares are counted by the member, most of an entry's size. Long windows have it too: their cap
  -- may be made scarce.
  local isNamed = isScarce or widest > KEPT_WINDOW_MS_MIN
  local loggedAt, leasedUntil = score(now + logLaterMs), score(now + leaseMs)
  local logged, leased, latestTag = {}, {}, 0
  for index = 1, count do
    local member = granted[index]
    local permit = (isNamed and member .. '|' or '') .. pollName .. '.' .. (number + index)
    local offset = 2 * index
    logged[offset - 1], logged[offset] = loggedAt, permit
    leased[offset - 1], leased[offset] = leasedUntil, permit
    if member then
      permits[offset - 1], permits[offset] = member, permit
      latestTag = math.max(latestTag, tagOf[member] or 0)
    else
      permitsAhead[#permitsAhead + 1] = permit
    end
  end
  -- Redis deletes a set with its last member, and its expiry too: without a new expiry, the lease
  -- of a dead worker would stay.
  local isFirst = redis.call('EXISTS', LOG, LEASES) < 2
  redis.call('ZADD', LOG, unpack(logged))
  redis.call('ZADD', LEASES, unpack(leased))
  if state.leftUntil > now then state.left = redis.call('HINCRBY', STATE, 'left', -count) end
  local whole = math.floor(latestTag)
  if whole > 0 and whole > tonumber(redis.call('HGET', FAIR, 'now') or 0) then redis.call('HSET', FAIR, 'now', tostring(whole)) end
  keepAlive(isFirst, {LOG, STATE, LEASES})
end

-- The short way: if no other waiters wait and there is room for all, their order does not matter,
-- and WAITERS need not be written. A waiter that has no place leaves room for every call that has a
-- place. If a waiter was evicted, the long way below refuses it, even if there is room again.
local isUncontended = not isScarce and redis.call('EXISTS', WAITERS, EVICTED) == 0
local free = isUncontended and freeNow() or 0
local function isRoomFor(count) return isUncontended and waiterCount > 0 and free >= count end
-- Permits ahead are granted only while nothing waits. They are not granted under long windows,
-- whose log is in Postgres too, nor while the limiter of the upstream bounds the cap. A poll takes
-- a part of what is left, so that all workers together never take all of it.
local function aheadOf(left)
  if widest > KEPT_WINDOW_MS_MIN or queued > 0 or state.leftUntil > now then return 0 end
  return math.min(aheadMax, math.floor(left / AHEAD_PART))
end
if isRoomFor(queued + #unplaced) or (#unplaced == 0 and isRoomFor(#placed)) then
  local left = math.max(0, free - queued - #unplaced)
  local ahead = aheadOf(left)
  grant(waiters, ahead)
  reply[ROOM] = left - ahead
  return remembered()
end

local function addRefusal(member, reason, retryAfterMs, hadPlace)
  for _, value in ipairs({member, reason, math.max(1, retryAfterMs), hadPlace}) do refusals[#refusals + 1] = value end
end

-- Refuses the members that were evicted from the queue; returns the others.
local function refuseEvicted(members)
  if #members == 0 or redis.call('EXISTS', EVICTED) == 0 then return members end
  local retryAt, others = redis.call('ZMSCORE', EVICTED, unpack(members)), {}
  for index, member in ipairs(members) do
    local at = numberOrNil(retryAt[index])
    if at then
      redis.call('ZREM', EVICTED, member)
      local reason = at < 0 and 'share' or state.closed > now and 'closed' or 'cap'
      addRefusal(member, reason, math.ceil(math.abs(at) - now), 1)
      evictedCount = evictedCount + 1
    else
      others[#others + 1] = member
    end
  end
  return others
end

local function joinQueue(member)
  local argument = argumentOf[member]
  local coalesced = tonumber(ARGV[argument + 4])
  local decision, tag, ms = unpack(join({
    member = member,
    share = shareOf(member),
    tag = tonumber(ARGV[argument + 1]),
    weight = tonumber(ARGV[argument + 2]),
    deadline = tonumber(ARGV[argument + 3]),
    coalesced = coalesced > 0 and KEYS[11 + coalesced] or nil,
    waits = true,
  }))
  if decision ~= 'own' and decision ~= 'ahead' and decision ~= 'follower' then
    -- It may have waited in the place of an identical call, which is gone or too late by now.
    redis.call('ZREM', WAITERS, member)
    redis.call('ZREM', WAITER_EXPIRIES, member)
    return addRefusal(member, decision, ms, 0)
  end
  tagOf[member] = tonumber(tag)
  placed[#placed + 1] = member
  if decision ~= 'follower' then joined[#joined + 1], joined[#joined + 2] = member, tag end
end

for _, member in ipairs(refuseEvicted(unplaced)) do joinQueue(member) end
-- The place of a call may have pushed another call past its deadline.
if #joined > 0 then
  placed = refuseEvicted(placed)
  queued = redis.call('ZCARD', QUEUE)
end
if #placed == 0 then
  -- Permits that ended here, or were free for a call that is evicted now, go to waiters of other
  -- workers. Without a wake-up these would find them only with their next polls.
  local count = math.min(#released + #unused + evictedCount, freeNow())
  if count > 0 then notifyFirst(count) end
  return remembered()
end
if isRoomFor(#placed) then
  grant(placed)
  return remembered()
end

for _, member in ipairs(redis.call('ZRANGEBYSCORE', WAITER_EXPIRIES, '-inf', score(now), 'LIMIT', 0, 1000)) do
  redis.call('ZREM', WAITER_EXPIRIES, member)
  redis.call('ZREM', WAITERS, member)
end
local byTag, byExpiry, expiry, isOwn = {}, {}, score(now + WAITER_TTL_MS), {}
for index, member in ipairs(placed) do
  byTag[2 * index - 1], byTag[2 * index] = string.format('%.17g', tagOf[member]), member
  byExpiry[2 * index - 1], byExpiry[2 * index] = expiry, member
  isOwn[member] = true
end
redis.call('ZADD', WAITERS, unpack(byTag))
redis.call('ZADD', WAITER_EXPIRIES, unpack(byExpiry))
keepAlive(true, {WAITERS, WAITER_EXPIRIES})

local freeLeases = concurrencyNow() - redis.call('ZCARD', LEASES)
local granted, waitMs, lastGranted = {}, 0, nil
-- Waiters of other workers that are woken up are as good as granted.
schedule(redis.call('ZRANGE', WAITERS, 0, WAITERS_PLANNED_MAX - 1), function(member, at)
  if at > now then
    if not isOwn[member] then return true end
    waitMs = math.ceil(at - now)
    return nil
  end
  if freeLeases <= 0 then return nil end
  freeLeases = freeLeases - 1
  if isOwn[member] then granted[#granted + 1] = member else notifyWaiter(member) end
  lastGranted = member
  return true
end)
reply[RETRY_IN] = waitMs
if (waitMs > 0 or #granted == 0) and capFollowsSetBack() then reply[RETRY_IN] = 1 end
if #granted > 0 then
  redis.call('ZREM', WAITERS, unpack(granted))
  redis.call('ZREM', WAITER_EXPIRIES, unpack(granted))
  grant(granted)
  if isAsync(lastGranted) ~= state.lastWasAsync then
    state.lastWasAsync = isAsync(lastGranted)
    redis.call('HSET', STATE, 'lastWasAsync', state.lastWasAsync and '1' or '0')
  end
end
-- If the cap is scarce, or the upstream has few requests left, the slot of a queued call may have
-- gone to a worker that polled earlier, to a call that shares a place, or to a share that has
-- demand now.
if (isScarce or state.leftUntil > now) and waitMs > 0 then
  local length = redis.call('ZCARD', QUEUE)
  if length > 0 and takePlanningTurn(length) then evictTooLate() end
end
return remembered()
