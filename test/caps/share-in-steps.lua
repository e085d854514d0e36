--[[ When a share lets a call be granted that has other calls of the share before it. It is computed
     twice: from the calls on which this depends, and from all calls.
     Input:  ARGV[1] clock, the rules, then the share and how many of its calls wait
     Output: twice when the share opens, and when it does if the other shares have no more demand ]]
--- @include "../../src/redis/lua/clock.lua"
--- @include "../../src/caps/lua/include/keys.lua"
--- @include "../../src/caps/lua/include/rules.lua"
--- @include "../../src/caps/lua/include/state.lua"
--- @include "../../src/caps/lua/include/plan.lua"
local share, waiting = ARGV[afterRules], tonumber(ARGV[afterRules + 1])
local at, ifQuietAt = createPlan().shareOpensBehind(share, waiting)
local plan = createPlan()
for _ = 1, waiting do plan.grant(share, math.max(plan.opensAt(), (plan.shareOpensAt(share)))) end
local atInSteps, ifQuietAtInSteps = plan.shareOpensAt(share)
return {score(at), score(ifQuietAt), score(atInSteps), score(ifQuietAtInSteps)}
