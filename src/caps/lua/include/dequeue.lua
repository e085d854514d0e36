--- @include "./fair.lua"
--- @include "./members.lua"
-- Takes those of the members out of the queue that are in it.
local function dequeue(members)
  local tags = redis.call('ZMSCORE', QUEUE, unpack(members))
  local left = {}
  for index, member in ipairs(members) do
    if tags[index] then
      local account = accountOf(member)
      left[account] = (left[account] or 0) + 1
    end
  end
  for account, count in pairs(left) do redis.call('HINCRBY', FAIR, waitingField(account), -count) end
  redis.call('ZREM', QUEUE, unpack(members))
  redis.call('ZREM', QUEUE_DEADLINES, unpack(members))
end
