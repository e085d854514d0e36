--- @include "./rules.lua"
--- @include "./members.lua"
--- @include "./fair.lua"
--- @include "./slots.lua"
--- @include "./plan.lua"
--- @include "./schedule.lua"
-- Estimates a call's slot; the next plan corrects it. The slot is the later of two times: by the
-- call's rank, if asynchronous calls get every other grant, the most that they may; and by how many
-- calls before it are of its share, and of each group around its share.
local function estimateSlot(member, ahead, ownCounts, asyncCount)
  local sync = math.max(0, ahead - asyncCount)
  local rank = isAsync(member) and ahead or sync + math.min(asyncCount, sync + 1)
  local at, shareAt, ifQuietAt = slotAt(rank), 0, 0
  local path = hasShares and pathOf(shareOf(member)) or {}
  for level = #path, 1, -1 do
    if level == #path or ownCounts[level] > ownCounts[level + 1] then
      local opensAt, opensIfQuietAt = createPlan().shareOpensBehind(path[level], ownCounts[level])
      if opensAt > shareAt then shareAt, ifQuietAt = opensAt, opensIfQuietAt end
    end
  end
  if shareAt > at then return shareAt, math.max(at, ifQuietAt), true end
  return at, at, false
end

-- The slot of a queued call; the slot that it would have if other shares had no more demand; and
-- whether it waits for its share alone. A long queue is not planned for each question: the slot is
-- then estimated from the call's rank.
local function queuedSlot(member, rank)
  if redis.call('ZCARD', QUEUE) <= PLANNED_LENGTH_MAX then
    local slot, slotIfQuiet, waitsForShare = now, now, false
    schedule(redis.call('ZRANGE', QUEUE, 0, -1), function(other, at, ifQuietAt, isShareBound)
      slot, slotIfQuiet, waitsForShare = at, ifQuietAt, isShareBound
      return other ~= member or nil
    end)
    return slot, slotIfQuiet, waitsForShare
  end
  local path, counts, ownCounts = pathOf(shareOf(member)), {}, {}
  for _, other in ipairs(hasShares and rank > 0 and redis.call('ZRANGE', QUEUE, 0, rank - 1) or {}) do
    for _, group in ipairs(pathOf(shareOf(other))) do counts[group] = (counts[group] or 0) + 1 end
  end
  for level, group in ipairs(path) do ownCounts[level] = counts[group] or 0 end
  return estimateSlot(member, rank, ownCounts, math.max(0, tonumber(redis.call('HGET', FAIR, 'async') or 0)))
end

local function queuedWaitMs(member, rank)
  local slot = queuedSlot(member, rank)
  return math.ceil(math.max(slot - now, congestionMs(redis.call('ZCARD', LEASES), rank)))
end
