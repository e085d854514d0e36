--- @include "./rules.lua"
--- @include "./members.lua"
--- @include "./fair.lua"
--- @include "./slots.lua"
--- @include "./plan.lua"
--- @include "./schedule.lua"
-- Estimates a call's slot from its rank, as if asynchronous calls got every other grant, the most that they may, and from the
-- calls of its share before it; the next plan corrects it.
local function estimateSlot(member, ahead, ownCount, asyncCount)
  local sync = math.max(0, ahead - asyncCount)
  local rank = isAsync(member) and ahead or sync + math.min(asyncCount, sync + 1)
  local at, shareAt, ifQuietAt = slotAt(rank), 0, 0
  if hasShares then shareAt, ifQuietAt = createPlan().shareOpensBehind(shareOf(member), ownCount) end
  if shareAt > at then return shareAt, math.max(at, ifQuietAt), true end
  return at, at, false
end

-- The slot of a call of the queue, from its rank where the queue is too long to be planned for each one that asks; when it
-- would be if other shares had no more demand, and whether it waits for its share alone.
local function queuedSlot(member, rank)
  if redis.call('ZCARD', QUEUE) <= PLANNED_LENGTH_MAX then
    local slot, slotIfQuiet, waitsForShare = now, now, false
    schedule(redis.call('ZRANGE', QUEUE, 0, -1), function(other, at, ifQuietAt, isShareBound)
      slot, slotIfQuiet, waitsForShare = at, ifQuietAt, isShareBound
      return other ~= member or nil
    end)
    return slot, slotIfQuiet, waitsForShare
  end
  local share, ownCount = shareOf(member), 0
  for _, other in ipairs(hasShares and rank > 0 and redis.call('ZRANGE', QUEUE, 0, rank - 1) or {}) do
    if shareOf(other) == share then ownCount = ownCount + 1 end
  end
  return estimateSlot(member, rank, ownCount, math.max(0, tonumber(redis.call('HGET', FAIR, 'async') or 0)))
end

local function queuedWaitMs(member, rank)
  local slot = queuedSlot(member, rank)
  return math.ceil(math.max(slot - now, congestionMs(redis.call('ZCARD', LEASES), rank)))
end
