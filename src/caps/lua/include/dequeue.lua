--- @include "./rules.lua"
--- @include "./fair.lua"
--- @include "./members.lua"
-- Takes the members that are in the queue out of it; returns how many.
local function dequeue(members)
  local tags = redis.call('ZMSCORE', QUEUE, unpack(members))
  local left, count, async = {}, 0, 0
  for index, member in ipairs(members) do
    if tags[index] then
      local share = shareOf(member)
      left[share] = (left[share] or 0) + 1
      count = count + 1
      if isAsync(member) then async = async + 1 end
    end
  end
  if count == 0 then return 0 end
  for share, number in pairs(left) do redis.call('HINCRBY', FAIR, queuedField(share), -number) end
  if async > 0 then redis.call('HINCRBY', FAIR, 'async', -async) end
  redis.call('ZREM', QUEUE, unpack(members))
  redis.call('ZREM', QUEUE_DEADLINES, unpack(members))
  return count
end
