--- @include "./rules.lua"
--- @include "./state.lua"
-- Whether Redis lost grants that still count when the hold is over; Postgres has them.
local function isPastMissing() return (state.initialisedAt or 0) > 0 and not state.isBackfilled and widest > COLD_START_HOLD_MS end
-- Whether they are to be put back now: before, the last of them are not in Postgres yet.
local function needsBackfill() return isPastMissing() and now > state.initialisedAt + BACKFILL_AFTER_MS end
