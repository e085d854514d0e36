--[[ Takes the leads of requests, each if it is free, or if a request has it that may be overtaken
     and is not sent yet.
     Input:  KEYS of each request: key of the lead, key of the stored answer
             ARGV of each request: token; 1 if it may overtake, otherwise 0
     Output: for each request whether it leads now (1 or 0), the token of another request that has
             or had the lead (or an empty text), and whether an answer is stored (1 or 0) ]]
local results = {}
for index = 1, #KEYS, 2 do
  local leader, answer, token = KEYS[index], KEYS[index + 1], ARGV[index]
  local holder = redis.call('SET', leader, token, 'PX', LEADER_MS, 'NX', 'GET')
  -- A command whose reply was lost is sent again: its request leads already.
  local other = holder and holder ~= token and holder or ''
  local isOvertaken = ARGV[index + 1] == '1' and string.sub(other, -#BEGUN) ~= BEGUN
  if other ~= '' and isOvertaken then redis.call('SET', leader, token, 'PX', LEADER_MS) end
  local isLeader = other == '' or isOvertaken
  results[#results + 1] = isLeader and 1 or 0
  results[#results + 1] = other
  results[#results + 1] = isLeader and redis.call('EXISTS', answer) or 0
end
return results
