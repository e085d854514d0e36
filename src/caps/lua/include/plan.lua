--- @include "./rules.lua"
--- @include "./state.lua"
--- @include "./slots.lua"
--[[ A plan: the grants of the log and those that are planned after them, with the earliest time of the next one.
     On a scarce cap no share holds more than half of a window while others have had demand lately; and of a long
     window a part stays for shares that have had none of it, unless only one share had demand in the last day. ]]
local CHUNK, NONE = 128, { count = 0 }

local function createPlan()
  local plan, planned, plannedOf = {}, { count = 0 }, {}
  -- Calculates the time of a planned grant that is not known yet: see shareOpensBehind.
  local calculate
  -- The share that had demand last, when that was, and when the last other one had.
  local demand = hasShares and redis.call('ZREVRANGE', DEMAND, 0, 1, 'WITHSCORES') or {}
  local lastAsker, lastDemandAt, otherDemandAt = demand[1], tonumber(demand[2] or 0), tonumber(demand[4] or 0)

  for _, rule in ipairs(rules) do
    rule.used, rule.chunks, rule.grantedTo, rule.isHalved = usedOf(rule), {}, nil, false
    -- Shares are counted from the whole log of their window, which is short.
    rule.chunk = rule.isShared and math.max(1, rule.used) or CHUNK
    rule.opensAt = math.max(now, coldStartEnd(rule))
    rule.kept = 0
    if rule.isShared and rule.window > KEPT_WINDOW_MS_MIN and state.askersChangedAt > now - KEPT_ALONE_MS then
      rule.kept = math.floor(rule.max * KEPT_PART)
    end
  end

  -- Members and times of a part of the window's log.
  local function logged(rule, chunk)
    rule.chunks[chunk] = rule.chunks[chunk]
      or redis.call('ZRANGEBYSCORE', LOG, windowStart(rule), '+inf', 'WITHSCORES', 'LIMIT', chunk * rule.chunk, rule.chunk)
    return rule.chunks[chunk]
  end

  -- The share's grant that is the nth from its latest.
  local function latestGrant(rule, share, nth)
    if not rule.grantedTo then
      rule.grantedTo = {}
      local entries = logged(rule, 0)
      for index = 1, #entries, 2 do
        local other = shareOf(entries[index])
        local grants = rule.grantedTo[other] or {}
        grants[#grants + 1] = tonumber(entries[index + 1])
        rule.grantedTo[other] = grants
      end
    end
    local grants, own = rule.grantedTo[share] or NONE, plannedOf[share] or NONE
    local index = #grants + own.count - nth + 1
    return grants[index] or own[index - #grants] or index > #grants and calculate(index - #grants) or nil
  end

  -- When the window has room for the next planned grant, if it may hold `max`.
  local function roomAt(rule, max)
    local index = rule.used + planned.count - max
    if index < 0 then return rule.opensAt end
    local number, chunk = index - rule.used + 1, math.floor(index / rule.chunk)
    local leavesAt = number < 1 and tonumber(logged(rule, chunk)[2 * (index - chunk * rule.chunk) + 2])
    return math.max(rule.opensAt, (leavesAt or planned[number] or calculate(number)) + rule.window)
  end

  -- When the next grant may be made, whoever gets it.
  function plan.opensAt()
    local at = math.max(now, state.closed)
    if state.leftUntil > now and planned.count >= state.left then at = math.max(at, state.leftUntil) end
    for _, rule in ipairs(rules) do
      if not rule.isHalved or planned.count < rule.max then at = math.max(at, roomAt(rule, rule.max)) end
    end
    return at
  end

  -- When no other share has demand any more.
  local function othersQuietAt(rule, share)
    local demandAt = lastAsker == share and otherDemandAt or lastDemandAt
    return demandAt + math.min(rule.window, DEMAND_WINDOW_MS)
  end

  -- When the share lets one of its calls be granted; 0: at any time. It may come sooner, at `ifQuietAt`, if the other
  -- shares have no demand any more.
  function plan.shareOpensAt(share)
    local at, ifQuietAt = 0, 0
    if not hasShares then return at, ifQuietAt end
    for _, rule in ipairs(rules) do
      if rule.isShared then
        local quietAt = othersQuietAt(rule, share)
        local blocking = quietAt >= now and latestGrant(rule, share, math.floor(rule.max / 2))
        if blocking then
          at = math.max(at, blocking + rule.window)
          ifQuietAt = math.max(ifQuietAt, math.min(blocking + rule.window, quietAt))
        end
        local latest = rule.kept > 0 and latestGrant(rule, share, 1)
        if latest then
          local keptAt = math.min(roomAt(rule, rule.max - rule.kept), latest + rule.window)
          at, ifQuietAt = math.max(at, keptAt), math.max(ifQuietAt, keptAt)
        end
      end
    end
    return at, ifQuietAt
  end

  function plan.grant(share, at)
    planned.count = planned.count + 1
    planned[planned.count] = at
    if not hasShares then return end
    local own = plannedOf[share] or { count = 0 }
    own.count = own.count + 1
    own[own.count] = at
    plannedOf[share] = own
  end

  -- What `shareOpensAt` says after `count` grants to the share, each as early as it may be. A grant depends on few of
  -- those before it, such as the one half a window's requests before it: the others are not calculated. All that is planned
  -- from here on is the share's, so a plan that was asked this can be asked nothing else.
  function plan.shareOpensBehind(share, count)
    plannedOf[share] = planned
    for _, rule in ipairs(rules) do
      -- While others ask, its half is full before the whole cap is: of 10 a minute its sixth call waits for its first
      -- to leave the window, though four are left.
      rule.isHalved = rule.isShared and othersQuietAt(rule, share) >= now
    end
    function calculate(number)
      local behind = planned.count
      planned.count = number - 1
      planned[number] = math.max(plan.opensAt(), (plan.shareOpensAt(share)))
      planned.count = behind
      return planned[number]
    end
    planned.count = count
    return plan.shareOpensAt(share)
  end

  return plan
end
