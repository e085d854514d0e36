--- @include "./rules.lua"
--- @include "./state.lua"
--- @include "./members.lua"
--- @include "./plan.lua"
--[[ Goes through the members, which are in order of their tags, in the order in which they are
     granted. The member with the least tag whose share is open goes first. While synchronous calls
     wait, asynchronous calls get at most every other grant, and only before synchronous calls of a
     higher tag.
     visit(member, at, ifQuietAt, isShareBound) returns true if the member is granted at that time,
     false if it is passed over, nil to stop. A call that waits for its share alone is share-bound;
     `ifQuietAt` is when it would be granted if the other shares had no more demand. ]]
local function schedule(members, visit)
  local plan = createPlan()
  local lastWasAsync = state.lastWasAsync
  -- Calls whose share is spent are set aside, in a list for each share and class.
  local classes, aside, asideOf = { [false] = { first = 1 }, [true] = { first = 1 } }, {}, { [false] = {}, [true] = {} }
  local asyncOf, shares = {}, {}
  for index, member in ipairs(members) do
    asyncOf[index] = isAsync(member)
    shares[index] = hasShares and shareOf(member)
    local class = classes[asyncOf[index]]
    class[#class + 1] = index
  end

  -- When each share opens, until the next grant.
  local opensAt, quietAt = {}, {}
  local function shareOpensAt(share)
    if not opensAt[share] then opensAt[share], quietAt[share] = plan.shareOpensAt(share) end
    return opensAt[share]
  end

  local function setAside(class, open)
    while class[class.first] do
      local index = class[class.first]
      local share, lists = shares[index], asideOf[asyncOf[index]]
      if shareOpensAt(share) <= open then return end
      if not lists[share] then
        lists[share] = { first = 1, share = share, isAsync = asyncOf[index] }
        aside[#aside + 1] = lists[share]
      end
      lists[share][#lists[share] + 1] = index
      class.first = class.first + 1
    end
  end

  -- Of the lists considered, for each class the list whose first member has the least tag.
  local best
  local function consider(list, isListAsync)
    local index = list[list.first]
    if index and (not best[isListAsync] or index < best[isListAsync][best[isListAsync].first]) then best[isListAsync] = list end
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
        list.opensAt = math.max(open, shareOpensAt(list.share))
        at = math.min(at, list.opensAt)
      end
    end
    if at == math.huge then return end

    best = {}
    consider(classes[false], false)
    consider(classes[true], true)
    for _, list in ipairs(aside) do
      if list[list.first] and list.opensAt <= at then consider(list, list.isAsync) end
    end
    local sync, async = best[false], best[true]
    local list = sync or async
    if sync and async and not lastWasAsync and async[async.first] < sync[sync.first] then list = async end

    local index = list[list.first]
    list.first = list.first + 1
    local isShareBound = at > open
    local ifQuietAt = isShareBound and math.max(open, quietAt[shares[index]]) or at
    local isGranted = visit(members[index], at, ifQuietAt, isShareBound)
    if isGranted == nil then return end
    if isGranted then
      plan.grant(shares[index], at)
      opensAt = {}
      lastWasAsync = asyncOf[index]
    end
  end
end
