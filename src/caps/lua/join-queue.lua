--[[ Queues calls, one after the other: each if its permit is expected before its deadline. Computes
     its fair tag and from that its slot. Calls that its place pushes past their deadlines are
     evicted.
     Input:  KEYS[11…] keys of coalesced calls  ARGV[1] clock, the rules, then of each call member,
             weight, deadline (ms) and which of these keys is its own (0: none)
     Output: 'uninitialised'; 'needs-backfill'; or 'joined', then of each call a list: 'cap',
             'share', 'closed', 'overloaded' (refused), 'own', 'follower' (shares another call's
             answer), 'ahead' (its slot comes before the slot of the call whose answer it could
             share), then the tag and ms until its slot ]]
--- @include "../../redis/lua/clock.lua"
--- @include "./include/keys.lua"
--- @include "./include/rules.lua"
--- @include "./include/state.lua"
--- @include "./include/lost-past.lua"
--- @include "./include/join.lua"
if not state.initialisedAt then return {'uninitialised'} end
if needsBackfill() then return {'needs-backfill'} end

local replies = {'joined'}
for index = afterRules, #ARGV, 4 do
  local member, coalesced = ARGV[index], tonumber(ARGV[index + 3])
  replies[#replies + 1] = join({
    member = member,
    share = shareOf(member),
    weight = tonumber(ARGV[index + 1]),
    deadline = tonumber(ARGV[index + 2]),
    coalesced = coalesced > 0 and KEYS[10 + coalesced] or nil,
  })
end
return replies
