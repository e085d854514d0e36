--- @include "./rules.lua"
--- @include "./fair.lua"
--- @include "./members.lua"
--- @include "./slots.lua"
--- @include "./forecast.lua"
--- @include "./dequeue-expired.lua"
--- @include "./key-life.lua"
--[[ Queues several calls at once if the cap has room for all of them: with the same outcome as if
     they came singly, but what they need is read and written once. Returns nil if they must be
     judged singly: on scarce caps, in long queues, and if a call might wait or be refused, or has
     its place already. ]]
local function joinTogether(calls)
  if #calls == 1 or isScarce then return nil end
  local length = redis.call('ZCARD', QUEUE)
  if length > PLANNED_LENGTH_MAX then return nil end
  if length > 0 then length = length - dequeueExpired() end
  -- Room for the last call is room for the calls before it.
  local most = length + #calls - 1
  if slotAt(most) > now then return nil end

  local shared, identicalOf = {}, {}
  for _, call in ipairs(calls) do
    if call.coalesced then shared[#shared + 1] = call.coalesced end
  end
  if #shared > 0 then
    for index, identical in ipairs(redis.call('MGET', unpack(shared))) do identicalOf[shared[index]] = identical or nil end
  end

  local isIdle = length == 0 and redis.call('ZCARD', WAITERS) == 0
  local names = {'now', 'seq', 'busySince'}
  local namesOfShares = #names + 1
  for _, call in ipairs(calls) do
    names[#names + 1] = startField(call.share)
    names[#names + 1] = queuedField(call.share)
  end
  local fair = {}
  if isIdle then
    redis.call('DEL', FAIR)
  else
    local values = redis.call('HMGET', FAIR, unpack(names))
    for index, name in ipairs(names) do fair[name] = tonumber(values[index]) end
  end
  local virtual, seq = fair.now or 0, fair.seq or 0
  local busySince = length > 0 and fair.busySince or now

  local leased = redis.call('ZCARD', LEASES)
  local function waitMs(ahead) return math.max(congestionMs(leased, ahead), drainMs(ahead, busySince)) end
  if waitMs(most) > CONGESTION_MS_MAX then return nil end

  local tags = {}
  if length > 0 then
    local flat = redis.call('ZRANGE', QUEUE, 0, -1, 'WITHSCORES')
    local isComing = {}
    for _, call in ipairs(calls) do isComing[call.member] = true end
    for index = 2, #flat, 2 do
      if isComing[flat[index - 1]] then return nil end
      tags[#tags + 1] = tonumber(flat[index])
    end
  end
  local function countUpTo(tag)
    local count = 0
    for _, other in ipairs(tags) do
      if other <= tag then count = count + 1 end
    end
    return count
  end

  local replies, queued, deadlines, async = {}, {}, {}, 0
  for index, call in ipairs(calls) do
    local whole, tag, tagText = tagAfter(virtual, fair[startField(call.share)] or 0, seq + 1)
    if call.coalesced and (identicalOf[call.coalesced] or call.member) ~= call.member then
      replies[index] = {'follow', tagText, 0}
    else
      replies[index] = {'ok', tagText, math.ceil(waitMs(countUpTo(tag)))}
      seq = seq + 1
      tags[#tags + 1] = tag
      fair[startField(call.share)] = whole + COST / call.weight
      fair[queuedField(call.share)] = math.max(0, fair[queuedField(call.share)] or 0) + 1
      if isAsync(call.member) then async = async + 1 end
      queued[#queued + 1], queued[#queued + 2] = tagText, call.member
      deadlines[#deadlines + 1], deadlines[#deadlines + 2] = score(call.deadline), call.member
      if call.coalesced then
        identicalOf[call.coalesced] = call.member
        redis.call('SET', call.coalesced, call.member, 'PX', math.max(1, math.ceil(call.deadline - now)))
      end
    end
  end
  if #queued == 0 then return replies end

  redis.call('ZADD', QUEUE, unpack(queued))
  redis.call('ZADD', QUEUE_DEADLINES, unpack(deadlines))
  local fields = {'seq', seq}
  if length == 0 then fields[3], fields[4] = 'busySince', score(now) end
  for index = namesOfShares, #names do
    if fair[names[index]] then
      fields[#fields + 1] = names[index]
      fields[#fields + 1] = tostring(fair[names[index]])
    end
  end
  redis.call('HSET', FAIR, unpack(fields))
  if async > 0 then redis.call('HINCRBY', FAIR, 'async', async) end
  keepAlive(length == 0, {FAIR, QUEUE, QUEUE_DEADLINES})
  return replies
end
