--[[ Notes which members an answer lacks that the recorded answers of its endpoint have. A
     member that is missing now and there again is ordinary: it raises no alarm for days. When a
     member is missing in several answers in a row, a probe makes the recorded call, because a
     source may have no data for what the callers want. A member that the answer to the probe lacks
     is missing in all answers: an alarm, until several answers have the member again.
     Input   noted, the JSON of the endpoint, the members that the answer lacks, and those known
             here that it has; or empty
     Output  lacking, the members of the alarms in words; isMemberNews, whether other processes must
             know;
             probedEndpoint, the endpoint that a probe must decide about; or empty ]]
local lacking, isMemberNews, probedEndpoint = h.lacking or '', false, ''

local function noteLacking(members, key, endpoint)
  local member = members[key]
  if member and member.ordinary then
    member.ordinary = now
    return
  end
  if member and member.good > 0 then
    members[key], isMemberNews = { ordinary = now }, true
    return
  end
  if not member then member, isMemberNews = { count = 0, good = 0, probedAt = 0 }, true end
  members[key] = member
  if member.since then return end
  member.count = member.count + 1
  if source == 'probe' then member.since, isMemberNews = now, true
  elseif member.count >= LACKING_TO_PROBE and now - member.probedAt >= CONFIRM_SCORE_EVERY_MS then
    -- Other processes must know it too, because further answers without the member say nothing
    -- until the next probe.
    member.probedAt, probedEndpoint, isMemberNews = now, endpoint, true
  end
end

local function noteThere(members, key)
  local member = members[key]
  if not member or member.ordinary then return end
  isMemberNews = true
  if not member.since then members[key] = { ordinary = now }
  else
    member.good = member.good + 1
    if member.good >= GOOD_TO_RECOVER then members[key] = nil end
  end
end

-- The members of all alarms in words: `a`, `b` (/endpoint).
local function lackingWords(members)
  local byEndpoint, endpoints, words = {}, {}, {}
  for key, member in pairs(members) do
    local endpoint, name = string.match(key, '^(%S+) (.*)$')
    if member.since then
      if not byEndpoint[endpoint] then
        byEndpoint[endpoint] = {}
        endpoints[#endpoints + 1] = endpoint
      end
      table.insert(byEndpoint[endpoint], '`' .. name .. '`')
    end
  end
  table.sort(endpoints)
  for _, endpoint in ipairs(endpoints) do
    local names = byEndpoint[endpoint]
    table.sort(names)
    local more = #names > LACKING_NAMED_MAX and ' and ' .. (#names - LACKING_NAMED_MAX) .. ' more' or ''
    words[#words + 1] = table.concat(names, ', ', 1, math.min(#names, LACKING_NAMED_MAX)) .. more .. ' (' .. endpoint .. ')'
  end
  return table.concat(words, '; ')
end

if noted ~= '' then
  local seen, members = cjson.decode(noted), h.members and cjson.decode(h.members) or {}
  for key, member in pairs(members) do
    if member.ordinary and now - member.ordinary > ORDINARY_MS then members[key] = nil end
  end
  for _, name in ipairs(seen.lacks) do noteLacking(members, seen.endpoint .. ' ' .. name, seen.endpoint) end
  for _, name in ipairs(seen.has) do noteThere(members, seen.endpoint .. ' ' .. name) end
  lacking = lackingWords(members)
  redis.call('HSET', key, 'members', cjson.encode(members), 'lacking', lacking)
end
