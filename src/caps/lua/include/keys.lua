-- The keys of one cap, in the order of `capKeys` in src/redis/keys.ts. STATE is also the cap's name
-- in messages.
local FAIR, QUEUE, QUEUE_DEADLINES, WAITERS, WAITER_EXPIRIES, EVICTED, LOG, LEASES, STATE, DEMAND = unpack(KEYS)
