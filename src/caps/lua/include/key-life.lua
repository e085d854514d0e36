--- @include "./rules.lua"
-- Keys of an idle cap end by themselves; that takes long, so their life is renewed when half of it
-- is over.
local function keepAlive(isFirst, keys)
  if not isFirst and redis.call('PTTL', keys[1]) > widest + KEY_LIFE_MS / 2 then return end
  for _, key in ipairs(keys) do redis.call('PEXPIRE', key, widest + KEY_LIFE_MS) end
end
