--- @include "./members.lua"
--- @include "./plan.lua"
--[[ Goes through the members, which are in order of their tags, in the order in which they are granted: the one with the
     least tag whose share is open goes first; while synchronous calls wait, asynchronous ones get every other grant.
     visit(member, at, ifQuietAt, isShareBound) returns true when the member is granted at that time, false when it is
     passed over, nil to stop. One that waits for its share alone is share-bound; `ifQuietAt` is when it would be granted if
     the other shares had no more demand. ]]
local function schedule(members, visit)
  local plan = createPlan()
  local lastWasAsync = state.lastWasAsync
  -- Calls whose share is spent are set aside, in a list for each share and class.
  local classes, aside, asideOf = { [false] = { first = 1 }, [true] = { first = 1 } }, {}, {}
  local asyncOf = {}
  for index, member in ipairs(members) do
    asyncOf[index] = isAsync(member)
    local class = classes[asyncOf[index]]
    class[#class + 1] = index
  end

  local function setAside(class, open)
    while class[class.first] do
      local member = members[class[class.first]]
      local share = shareOf(member)
      if plan.shareOpensAt(share) <= open then return end
      local key = share .. (isAsync(member) and '|~' or '|')
      local list = asideOf[key]
      if not list then
        list = { first = 1, share = share, isAsync = isAsync(member) }
        aside[#aside + 1] = list
        asideOf[key] = list
      end
      list[#list + 1] = class[class.first]
      class.first = class.first + 1
    end
  end

  while true do
    local open = plan.opensAt()
    local at = math.huge
    for _, class in pairs(classes) do
      if hasShares then setAside(class, open) end
      if class[class.first] then at = open end
    end
    for _, list in ipairs(aside) do
      if list[list.first] then
        list.opensAt = math.max(open, (plan.shareOpensAt(list.share)))
        at = math.min(at, list.opensAt)
      end
    end
    if at == math.huge then return end

    local best = {}
    local function consider(list, isListAsync)
      local index = list[list.first]
      if index and (not best[isListAsync] or index < best[isListAsync][best[isListAsync].first]) then best[isListAsync] = list end
    end
    if at >= open then
      for class = 0, 1 do consider(classes[class == 1], class == 1) end
    end
    for _, list in ipairs(aside) do
      if list[list.first] and list.opensAt <= at then consider(list, list.isAsync) end
    end
    local sync, async = best[false], best[true]
    local list = sync or async
    if sync and async and not lastWasAsync and async[async.first] < sync[sync.first] then list = async end

    local index = list[list.first]
    local member = members[index]
    list.first = list.first + 1
    local share = hasShares and shareOf(member)
    local isShareBound = at > open
    local ifQuietAt = at
    if isShareBound then
      local _, quietAt = plan.shareOpensAt(share)
      ifQuietAt = math.max(open, quietAt)
    end
    local isGranted = visit(member, at, ifQuietAt, isShareBound)
    if isGranted == nil then return end
    if isGranted then
      plan.grant(share, at)
      lastWasAsync = asyncOf[index]
    end
  end
end
