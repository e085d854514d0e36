--[[ Stores answers, each in its partition, and keeps the answers of a partition within their bytes.
     A full partition evicts answers of the owner that has most, the answers that end soonest first:
     nobody evicts the answers of an owner that has less. It evicts some more than it must while the
     same owner has most.
     If a request had the lead for an answer, its lead ends in the same step.
     An answer that cannot be stored leaves the others alone.
     Input:  KEYS of each answer: entry, index (by end), sizes (`<bytes> <owner>`), owners (by
             bytes), answers by owner and end; if a request had the lead, the key of the lead and
             the name of the queued call whose answer it is
             ARGV of each answer: frame, life (ms), now (ms), bytes of the partition, owner, how
             many tokens the request has, these tokens, by one of which it holds the lead
     Output: for each answer the bytes that it takes, or why it is not stored
             An error if no answer is stored ]]
local ENTRY, INDEX, SIZES, OWNERS, OWNED
local endedLeft = ENDED_MAX

-- A member of OWNED. All members have the same score, so Redis sorts them byte by byte: by owner,
-- and the answers of one owner by their end.
local function owned(itsOwner, endsAt, key) return itsOwner .. '\0' .. endsAt .. '\0' .. key end

local function sizeOf(kept)
  local bytes, itsOwner = string.match(kept or '0', '^(%d+) ?(.*)$')
  return tonumber(bytes), itsOwner
end

-- The bytes and the owner of each of these answers.
local function sizesOf(keys)
  local sizes, owners = {}, {}
  for index, kept in ipairs(redis.call('HMGET', SIZES, unpack(keys))) do sizes[index], owners[index] = sizeOf(kept) end
  return sizes, owners
end

local function takeOff(itsOwner, bytes)
  if tonumber(redis.call('ZINCRBY', OWNERS, -bytes, itsOwner)) <= 0 then redis.call('ZREM', OWNERS, itsOwner) end
end

-- Removes answers. Returns their bytes, which the caller must subtract from the total.
local function drop(keys)
  local sizes, owners = sizesOf(keys)
  local endsAt, freed, freedOf, members = redis.call('ZMSCORE', INDEX, unpack(keys)), 0, {}, {}
  for index, bytes in ipairs(sizes) do
    local itsOwner = owners[index]
    freed, freedOf[itsOwner] = freed + bytes, (freedOf[itsOwner] or 0) + bytes
    members[index] = owned(itsOwner, endsAt[index] or '', keys[index])
  end
  for itsOwner, bytes in pairs(freedOf) do takeOff(itsOwner, bytes) end
  redis.call('HDEL', SIZES, unpack(keys))
  redis.call('ZREM', INDEX, unpack(keys))
  redis.call('ZREM', OWNED, unpack(members))
  redis.call('DEL', unpack(keys))
  return freed
end

-- The answers to evict from the owner with the most bytes, until they free `enough` or another
-- owner has as many bytes.
local function nextToEvict(enough, total)
  -- The number of answers that free `enough` bytes on average.
  local average = math.ceil(enough / total * redis.call('ZCARD', INDEX))
  local most = math.min(EVICTED_MAX, math.max(EVICTED_MIN, average))
  local first = redis.call('ZREVRANGE', OWNERS, 0, 1, 'WITHSCORES')
  local largest, surplus = first[1] or '', tonumber(first[2] or 0) - tonumber(first[4] or 0)
  local members = redis.call('ZRANGEBYLEX', OWNED, '[' .. largest .. '\0', '(' .. largest .. '\1', 'LIMIT', 0, most)
  local keys, chosen, taken = {}, {}, 0
  for index, member in ipairs(members) do keys[index] = string.match(member, '%z%d*%z(.*)$') end
  -- The earlier version stored these answers without OWNED. @until 0.4.0
  local isKnown = #keys > 0
  if not isKnown then keys = redis.call('ZRANGE', INDEX, 0, EVICTED_MAX - 1) end
  if #keys == 0 then return keys end
  local sizes, owners = sizesOf(keys)
  local endsAt = redis.call('ZMSCORE', INDEX, unpack(keys))
  for index, key in ipairs(keys) do
    if not isKnown then
      if owners[index] == largest then return {key} end
    elseif members[index] == owned(owners[index], endsAt[index] or '', key) then
      chosen[#chosen + 1] = key
      taken = taken + sizes[index]
      if taken >= enough or taken > surplus then return chosen end
    else
      -- The earlier version removed or renewed the answer without changing OWNED. @until 0.4.0
      redis.call('ZREM', OWNED, members[index])
    end
  end
  if not isKnown then return {keys[1]} end
  return #chosen > 0 and chosen or nextToEvict(enough, total)
end

-- Removes the records of the answer in ENTRY, which is stored again. Returns its bytes.
local function replace(kept)
  local bytes, itsOwner = sizeOf(kept)
  takeOff(itsOwner, bytes)
  redis.call('ZREM', OWNED, owned(itsOwner, redis.call('ZSCORE', INDEX, ENTRY) or '', ENTRY))
  redis.call('ZREM', INDEX, ENTRY)
  return bytes
end

-- Removes answers that have ended. Returns their bytes.
local function dropEnded(now)
  if endedLeft == 0 then return 0 end
  local ended = redis.call('ZRANGEBYSCORE', INDEX, '-inf', now, 'LIMIT', 0, endedLeft)
  endedLeft = endedLeft - #ended
  return #ended > 0 and drop(ended) or 0
end

local function store(frame, lifeMs, now, bytesMax, owner)
  local kept, total, sweptAt = unpack(redis.call('HMGET', SIZES, ENTRY, 'total', 'swept'))
  total = tonumber(total or 0)
  if kept then total = total - replace(kept) end
  -- At most once a second, and always before an eviction.
  local second = string.format('%d', now / 1000)
  if sweptAt ~= second then
    total = total - dropEnded(now)
    sweptAt = endedLeft > 0 and second or ''
  end
  redis.call('SET', ENTRY, frame, 'PX', lifeMs)
  -- The bytes that Redis really uses. For small answers the overhead is larger than the answer.
  local size = redis.call('MEMORY', 'USAGE', ENTRY) + 3 * #ENTRY + 2 * #owner + INDEX_BYTES
  redis.call('ZINCRBY', OWNERS, size, owner)
  total = total + size
  if total > bytesMax then total = total - dropEnded(now) end
  while total > bytesMax do
    local evicted = nextToEvict(total - bytesMax + bytesMax * EVICTED_AHEAD, total)
    if #evicted == 0 then break end
    total = total - drop(evicted)
  end
  local endsAt = string.format('%d', now + tonumber(lifeMs))
  redis.call('ZADD', INDEX, endsAt, ENTRY)
  redis.call('ZADD', OWNED, 0, owned(owner, endsAt, ENTRY))
  redis.call('HSET', SIZES, ENTRY, size .. ' ' .. owner, 'total', total, 'swept', sweptAt)
  return size
end

local function endLead(leader, coalesced, tokens)
  local holder, isHeld = redis.call('GET', leader), false
  for _, token in ipairs(tokens) do isHeld = isHeld or holder == token end
  redis.call('DEL', coalesced, isHeld and leader or coalesced)
end

local function storeAndEndLead(values, lead, tokens)
  local frame, lifeMs, now, bytesMax, owner = unpack(values)
  local size = store(frame, lifeMs, tonumber(now), tonumber(bytesMax), owner)
  if #lead > 0 then endLead(lead[1], lead[2], tokens) end
  return size
end

local results, isAnyStored, key, value = {}, false, 1, 1
while key <= #KEYS do
  ENTRY, INDEX, SIZES, OWNERS, OWNED = unpack(KEYS, key, key + 4)
  local values, tokens = {unpack(ARGV, value, value + 4)}, tonumber(ARGV[value + 5])
  key, value = key + 5, value + 6
  local lead = tokens > 0 and {KEYS[key], KEYS[key + 1]} or {}
  local isStored, result = pcall(storeAndEndLead, values, lead, {unpack(ARGV, value, value + tokens - 1)})
  key, value = key + #lead, value + tokens
  isAnyStored = isAnyStored or isStored
  results[#results + 1] = isStored and result or result.err or tostring(result)
end
return isAnyStored and results or redis.error_reply(results[1])
