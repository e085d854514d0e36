--- @include "./rules.lua"
-- Start-time fair queueing (Goyal et al. 1996). Fields of FAIR: `now` is the virtual time, `seq`
-- numbers calls so that equal tags are served in order, `async` counts the asynchronous calls in
-- the queue, `busySince` is since when it has not been empty; of each share, and of each group that
-- holds shares, `w:` counts its calls in the queue, `f:` says where its next call starts. A
-- call starts where its share and all groups around it let it.
local function queuedField(share) return 'w:' .. share end
local function startField(share) return 'f:' .. share end

-- How much of the virtual time a group on a path may have for each that a group in it may.
local function widthOf(path, level) return 2 ^ (#path - level) end
