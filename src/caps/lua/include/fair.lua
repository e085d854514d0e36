-- Start-time fair queueing (Goyal et al. 1996). Fields of FAIR: `now` is the virtual time, `base` what job priorities
-- are counted from; of each account `w:` says how many of its calls are queued, `f:` where its next one starts.
local function waitingField(account) return 'w:' .. account end
local function startField(account) return 'f:' .. account end
