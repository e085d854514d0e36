--- @include "./rules.lua"
--- @include "./fair.lua"
--- @include "./members.lua"
-- Takes the members that are in the queue out of it; returns how many.
local function dequeue(members)
  local tags = redis.call('ZMSCORE', QUEUE, unpack(members))
  local left, count, async = {}, 0, 0
  for index, member in ipairs(members) do
    if tags[index] then
      for _, group in ipairs(pathOf(shareOf(member))) do left[group] = (left[group] or 0) + 1 end
      count = count + 1
      if isAsync(member) then async = async + 1 end
    end
  end
  if count == 0 then return 0 end
  for group, number in pairs(left) do redis.call('HINCRBY', FAIR, queuedField(group), -number) end
  if async > 0 then redis.call('HINCRBY', FAIR, 'async', -async) end
  redis.call('ZREM', QUEUE, unpack(members))
  redis.call('ZREM', QUEUE_DEADLINES, unpack(members))
  return count
end
