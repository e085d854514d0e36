--- @include "./rules.lua"
--- @include "./state.lua"
--- @include "./slots.lua"
--[[ A plan: the grants of the log and the grants that are planned after them, with the earliest
     time of the next grant.
     On a scarce cap a share is a path of groups: `group:a/b` is in `group:a`, which is in the
     window. Three rules hold for each group on the path:
     - Half: it holds at most half of what the group around it may hold, while another group in that
       group has demand.
     - Quarter: if its name begins with `q`, it holds at most a quarter of the window, while anybody
       else has demand.
     - Kept part: of a long window, it leaves KEPT_PART of what the group around it may hold to
       groups that have had little. If an account of no network was the only share with demand in
       the last day, the rule does not bind it.
     ]]
local CHUNK, NONE = 128, { count = 0 }

local function createPlan()
  local plan, planned, plannedOf = {}, { count = 0 }, {}
  -- Calculates the time of a planned grant that is not known yet: see shareOpensBehind.
  local calculate
  for _, rule in ipairs(rules) do
    rule.used, rule.chunks, rule.grantedTo, rule.isHalved, rule.boundsOf = usedOf(rule), {}, nil, false, {}
    -- Shares are counted from the whole log of their window, which is short.
    rule.chunk = rule.isShared and math.max(1, rule.used) or CHUNK
    rule.opensAt = math.max(now, coldStartEnd(rule))
  end

  -- Members and times of a part of the window's log.
  local function logged(rule, chunk)
    rule.chunks[chunk] = rule.chunks[chunk]
      or redis.call('ZRANGEBYSCORE', LOG, windowStart(rule), '+inf', 'WITHSCORES', 'LIMIT', chunk * rule.chunk, rule.chunk)
    return rule.chunks[chunk]
  end

  -- The group's grant that is the nth from its latest.
  local function latestGrant(rule, group, nth)
    if not rule.grantedTo then
      rule.grantedTo = {}
      local entries = logged(rule, 0)
      for index = 1, #entries, 2 do
        for _, other in ipairs(pathOf(shareOf(entries[index]))) do
          local grants = rule.grantedTo[other] or {}
          grants[#grants + 1] = tonumber(entries[index + 1])
          rule.grantedTo[other] = grants
        end
      end
    end
    local grants, own = rule.grantedTo[group] or NONE, plannedOf[group] or NONE
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

  -- For each group: the group in it that had demand last, when, and when another group in it had
  -- demand. If there are more groups with demand than are read, they count as one other group: that
  -- fails closed.
  local demandIn
  local function readDemand()
    demandIn = {}
    local askers = redis.call('ZREVRANGE', DEMAND, 0, ASKERS_READ_MAX - 1, 'WITHSCORES')
    for index = 1, #askers, 2 do
      local at, around = tonumber(askers[index + 1]), ''
      for _, group in ipairs(pathOf(askers[index])) do
        local known = demandIn[around]
        if not known then demandIn[around] = { last = group, lastAt = at }
        elseif group ~= known.last and not known.otherAt then known.otherAt = at end
        around = group
      end
    end
    local all = #askers == 2 * ASKERS_READ_MAX and demandIn['']
    if all and not all.otherAt then all.otherAt = tonumber(askers[#askers]) end
  end

  local function othersAskedAt(around, group)
    if not demandIn then readDemand() end
    local known = demandIn[around]
    if not known then return 0 end
    return known.last == group and known.otherAt or known.last ~= group and known.lastAt or 0
  end

  -- The bounds of the next grant of a share, and when the last of the others that bind it has no
  -- more demand (0: no others bind it). A bound closes the window to the share while one of its
  -- `groups` has `count` grants there. A bound with `room` does not close the window while the
  -- group `around` (nil: all groups together) has fewer grants than `room` there.
  local function createBounds(rule, share, areOthersQuiet)
    local path, bounds, quietAt = pathOf(share), {}, 0
    local mayHold, askedAt = rule.max, 0
    local demandLasts = math.min(rule.window, DEMAND_WINDOW_MS)
    local hasKept = rule.window > KEPT_WINDOW_MS_MIN and (isOfNetwork(share) or state.askersChangedAt > now - KEPT_ALONE_MS)
    for level, group in ipairs(path) do
      local most, kept = mayHold, hasKept and math.floor(mayHold * KEPT_PART) or 0
      if kept > 0 then
        -- A group has had little if it has had fewer grants than half of what is kept, and a group
        -- in it if it has had fewer than half of that. A share has had little if it has had none.
        local newcomers, few = {}, kept
        for inner = level, #path do
          few = inner == #path and 1 or math.max(1, math.floor(few / 2))
          newcomers[#newcomers + 1] = { group = path[inner], count = few }
        end
        bounds[#bounds + 1] = { groups = newcomers, around = path[level - 1], room = mayHold - kept }
        most = mayHold - kept
      end
      local othersAt = othersAskedAt(path[level - 1] or '', group)
      askedAt = math.max(askedAt, othersAt)
      local isQuarter = string.find(group, level == 1 and '^group:q' or '/q[^/]*$') ~= nil
      local half = mayHold
      if othersAt + demandLasts >= now then half = math.max(1, math.floor(mayHold / 2)) end
      if isQuarter and askedAt + demandLasts >= now then half = math.min(half, math.max(1, math.floor(rule.max / 4))) end
      if half < mayHold and not areOthersQuiet then
        quietAt = math.max(quietAt, (isQuarter and askedAt or othersAt) + demandLasts)
        bounds[#bounds + 1] = { groups = { { group = group, count = half } } }
        most = math.min(most, half)
      end
      mayHold = most
    end
    return bounds, quietAt
  end

  local function boundsOf(rule, share)
    local known = rule.boundsOf[share]
    if known then return known end
    local bounds, quietAt = createBounds(rule, share, false)
    known = { bounds = bounds, quietAt = quietAt, ifQuiet = quietAt > 0 and createBounds(rule, share, true) or bounds }
    rule.boundsOf[share] = known
    return known
  end

  local function lastEndOf(rule, bounds)
    local at = 0
    for _, bound in ipairs(bounds) do
      local closedUntil = 0
      for _, group in ipairs(bound.groups) do
        local latest = latestGrant(rule, group.group, group.count)
        if latest then closedUntil = math.max(closedUntil, latest + rule.window) end
      end
      if closedUntil > 0 and bound.room then
        local opensAt
        if bound.around then
          local latest = latestGrant(rule, bound.around, bound.room)
          opensAt = latest and latest + rule.window or 0
        else
          opensAt = roomAt(rule, bound.room)
        end
        closedUntil = math.min(closedUntil, opensAt)
      end
      at = math.max(at, closedUntil)
    end
    return at
  end

  -- When the share lets one of its calls be granted; 0: at any time. It may come sooner, at
  -- `ifQuietAt`, if the other shares have no demand any more.
  function plan.shareOpensAt(share)
    local at, ifQuietAt = 0, 0
    if not hasShares then return at, ifQuietAt end
    for _, rule in ipairs(rules) do
      if rule.isShared then
        local known = boundsOf(rule, share)
        local boundAt = lastEndOf(rule, known.bounds)
        at = math.max(at, boundAt)
        if boundAt > 0 and known.quietAt > 0 then
          boundAt = math.min(boundAt, math.max(lastEndOf(rule, known.ifQuiet), known.quietAt))
        end
        ifQuietAt = math.max(ifQuietAt, boundAt)
      end
    end
    return at, ifQuietAt
  end

  function plan.grant(share, at)
    planned.count = planned.count + 1
    planned[planned.count] = at
    if not hasShares then return end
    for _, group in ipairs(pathOf(share)) do
      local own = plannedOf[group] or { count = 0 }
      own.count = own.count + 1
      own[own.count] = at
      plannedOf[group] = own
    end
  end

  -- What `shareOpensAt` says after `count` grants to the share, each as early as it may be. A grant
  -- depends on few grants before it, and the others are not calculated. For example, if the share
  -- may have 5 of a window's 10 requests, a grant depends on the fifth grant before it. All that is
  -- planned from here on is the share's, so a plan that has answered this question can answer no
  -- other.
  function plan.shareOpensBehind(share, count)
    for _, group in ipairs(pathOf(share)) do plannedOf[group] = planned end
    for _, rule in ipairs(rules) do
      -- While others ask, its half is full before the whole cap is: of 10 a minute its sixth call
      -- waits for its first to leave the window, though four are left.
      rule.isHalved = rule.isShared and boundsOf(rule, share).quietAt > 0
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
