--[[ Releases permits and grants new ones to the waiters with the least fair tags, of all workers: the polling worker's
     own get theirs in the reply, the workers of others are woken up.
     Input:  ARGV[1] clock, the rules, then lease (ms), mean service time (ms) and number of released permits, number of
             waiters, the released permits, then member and tag of each waiter
     Output: 'uninitialised'; 'needs-backfill'; or 'ok', ms until the rates let the next of the waiters go (0: when
             another request ends), ms until the upstream opens again, then member and permit of each grant ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./include/keys.lua"
--- @include "./include/rules.lua"
--- @include "./include/state.lua"
--- @include "./include/slots.lua"
--- @include "./include/dequeue.lua"
--- @include "./include/share.lua"
--- @include "./include/key-life.lua"
--- @include "./include/notify.lua"
--- @include "./include/release-permits.lua"
local leaseMs, meanMs = tonumber(ARGV[own]), tonumber(ARGV[own + 1])
local releasedCount, waiterCount = tonumber(ARGV[own + 2]), tonumber(ARGV[own + 3])
local released, firstWaiter = {}, own + 4 + releasedCount
for index = own + 4, firstWaiter - 1 do released[#released + 1] = ARGV[index] end

if not state.initialisedAt then return {'uninitialised', 0, 0} end
if state.initialisedAt > 0 and not state.isBackfilled and widest > COLD_START_HOLD_MS then
  if now > state.initialisedAt + BACKFILL_AFTER_MS then return {'needs-backfill', 0, 0} end
  releasePermits(released, meanMs)
  return {'ok', BACKFILL_AFTER_MS, 0}
end
releasePermits(released, meanMs)
redis.call('ZREMRANGEBYSCORE', LOG, '-inf', score(now - widest))
redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', score(now))
local free = freeNow()
local reply = {'ok', 0, math.max(0, math.ceil(state.closed - now))}

local function grant(members, latestTag)
  dequeue(members)
  local number = redis.call('HINCRBY', STATE, 'permits', #members) - #members
  local logged, leased = {}, {}
  for index, member in ipairs(members) do
    local permit = member .. '|' .. (number + index)
    logged[#logged + 1] = score(now)
    logged[#logged + 1] = permit
    leased[#leased + 1] = score(now + leaseMs)
    leased[#leased + 1] = permit
    reply[#reply + 1] = member
    reply[#reply + 1] = permit
  end
  local isFirst = redis.call('ZCARD', LOG) == 0
  redis.call('ZADD', LOG, unpack(logged))
  redis.call('ZADD', LEASES, unpack(leased))
  if state.leftUntil > now then redis.call('HINCRBY', STATE, 'left', -#members) end
  if latestTag > tonumber(redis.call('HGET', FAIR, 'now') or 0) then redis.call('HSET', FAIR, 'now', tostring(latestTag)) end
  keepAlive(isFirst, {LOG, STATE, LEASES})
end

local tagOf, members, latestTag = {}, {}, 0
for index = 1, waiterCount do
  local member, tag = ARGV[firstWaiter + 2 * index - 2], tonumber(ARGV[firstWaiter + 2 * index - 1])
  tagOf[member] = tag
  members[index] = member
  latestTag = math.max(latestTag, tag)
end
if waiterCount == 0 then return reply end

-- Nothing waits and there is room for all: no set of waiters need be kept.
if not isScarce and free >= waiterCount and redis.call('ZCARD', WAITERS) == 0 then
  grant(members, latestTag)
  return reply
end

for _, member in ipairs(redis.call('ZRANGEBYSCORE', WAITER_EXPIRIES, '-inf', score(now), 'LIMIT', 0, 1000)) do
  redis.call('ZREM', WAITER_EXPIRIES, member)
  redis.call('ZREM', WAITERS, member)
end
local byTag, byExpiry, expiry = {}, {}, score(now + WAITER_TTL_MS)
for index, member in ipairs(members) do
  byTag[2 * index - 1], byTag[2 * index] = tagOf[member], member
  byExpiry[2 * index - 1], byExpiry[2 * index] = expiry, member
end
redis.call('ZADD', WAITERS, unpack(byTag))
redis.call('ZADD', WAITER_EXPIRIES, unpack(byExpiry))
keepAlive(true, {WAITERS, WAITER_EXPIRIES})

-- An account's share changes with its grants alone, and with its waiters that were woken up: theirs are as good as
-- granted.
local spentUntil, notified = {}, {}
local function blockedUntil(account)
  spentUntil[account] = spentUntil[account] or shareSpentUntil(account, notified[account] or 0)
  return spentUntil[account]
end

local granted, ahead, nextAt = {}, 0, nil
latestTag = 0
for _, member in ipairs(redis.call('ZRANGE', WAITERS, 0, 199)) do
  local account = accountOf(member)
  local blocked = blockedUntil(account)
  if blocked > now then
    if tagOf[member] then nextAt = math.min(nextAt or blocked, blocked) end
  elseif ahead >= free then
    if tagOf[member] then
      -- Grants of a scarce cap are in the log already, the others not yet.
      nextAt = math.min(nextAt or math.huge, slotAt(ahead - (isScarce and #granted or 0)))
      break
    end
    ahead = ahead + 1
  else
    if tagOf[member] then
      granted[#granted + 1] = member
      latestTag = math.max(latestTag, tagOf[member])
      -- Shares are counted from the log: each grant must be in it before the next is judged.
      if isScarce then
        grant({member}, latestTag)
        spentUntil[account] = nil
      end
    else
      notifyWaiter(member)
      notified[account] = (notified[account] or 0) + 1
      spentUntil[account] = nil
    end
    ahead = ahead + 1
  end
end
if #granted > 0 then
  redis.call('ZREM', WAITERS, unpack(granted))
  redis.call('ZREM', WAITER_EXPIRIES, unpack(granted))
  if not isScarce then grant(granted, latestTag) end
end
reply[2] = nextAt and math.ceil(nextAt - now) or 0
return reply
