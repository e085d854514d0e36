--- @include "./rules.lua"
--- @include "./state.lua"
-- Whether Redis lost grants that still count when the hold is over. Postgres has these grants.
local function isPastMissing() return (state.initialisedAt or 0) > 0 and not state.isBackfilled and widest > COLD_START_HOLD_MS end
-- Whether to put these grants back now. Until then Postgres may lack the last of them.
local function needsBackfill() return isPastMissing() and now > state.initialisedAt + BACKFILL_AFTER_MS end
