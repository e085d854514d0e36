--[[ Reads the cap as it is now, for a queued call or for a call that would come now. What ended by
     time, places of expired calls and leases, is removed before.
     Input:  KEYS[11] coalesced (may be absent)  ARGV[1] clock, the rules, then the member (empty: a
             call that would come now)
     Output: calls before it, or before the call whose answer it shares (-1: neither is queued), ms
             until that slot, requests under way, requests that may start now, ms until the upstream
             opens again, then what is left of each rate ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./include/keys.lua"
--- @include "./include/rules.lua"
--- @include "./include/state.lua"
--- @include "./include/slots.lua"
--- @include "./include/dequeue-expired.lua"
--- @include "./include/queued-slot.lua"
local COALESCED, member = KEYS[11], ARGV[afterRules]
dequeueExpired()
redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', score(now))
local function rankOf(queued) return queued and redis.call('ZRANK', QUEUE, queued) end
if COALESCED and not rankOf(member) then member = redis.call('GET', COALESCED) end
local rank = rankOf(member)
local ahead = rank or ARGV[afterRules] ~= '' and -1 or redis.call('ZCARD', QUEUE)
local leased = redis.call('ZCARD', LEASES)
local waitMs = rank and queuedWaitMs(member, rank)
  or math.ceil(math.max(slotAt(math.max(0, ahead)) - now, congestionMs(leased, ahead)))
local limitedUntil = math.max(state.closed, state.left <= 0 and state.leftUntil or 0)
local limitedMs = math.max(0, math.ceil(limitedUntil - now))
local reply = {ahead, waitMs, leased, freeNow(), limitedMs}
for _, rule in ipairs(rules) do reply[#reply + 1] = math.max(0, rule.max - usedOf(rule)) end
return reply
