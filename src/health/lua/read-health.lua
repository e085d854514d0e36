--[[ The health hash of an upstream.
     Input   KEYS[1] health hash
     Output  h, its fields; num(name), a field as a number, 0 if it is absent; text(number),
             without loss ]]
local key = KEYS[1]
local h = {}
local flat = redis.call('HGETALL', key)
for i = 1, #flat, 2 do h[flat[i]] = flat[i + 1] end
local function num(name) return tonumber(h[name]) or 0 end
local function text(number) return string.format('%.17g', number) end
