-- raiseFloor: raises the floor of a slot. Where a key has no fence, a token that is not above the floor is refused
-- unless its claim has been found alive since; so fences whose token was there before may be removed.
--
-- KEYS[1]  the floor of the slot, a string; it need not exist
--
-- ARGV[1]  token in canonical text, above every token of the fences that are to be removed
--
-- Replies: flat arrays of bulk strings; the first item is the code, the fields follow in this order
--   raised                  the floor is at the token now
--   current                 the floor was there already
--   stale token             the floor is above it, at the token given here; nothing was changed
--   corrupt field           the floor is not one that this script wrote; nothing was changed
--   badtoken                ARGV[1] is not a canonical token; nothing was changed

-- begin of the part that is the same in every script (a test holds it so)
local find, sub = string.find, string.sub

-- Tokens are compared as text and never become numbers: Lua would round them. Their parts have an upper end:
-- the generation is a signed 64-bit number, and the counter behind the sequence repeats at 2147483647.
local function isToken(text)
  return text and #text == 37 and sub(text, 6, 6) == '.' and sub(text, 27, 27) == '.'
    and find(text, '^%d+%.%d+%.%d+$') ~= nil
    and sub(text, 7, 26) <= '09223372036854775807' and sub(text, 28) <= '2147483646'
end

-- At most 15 digits: a count that Lua adds to exactly.
local function isCount(text)
  return text and #text <= 15 and (text == '0' or find(text, '^[1-9]%d*$') ~= nil)
end

local function isDigest(text)
  return text and #text == 64 and find(text, '^[0-9a-f]+$') ~= nil
end

local function isOrder(text)
  return #text == 16 and find(text, '^%d+$') ~= nil
end

local function isJob(text)
  return text and #text >= 1 and #text <= 64
end

-- The name of the first field that is not as it must be. A result is described by digest, revision and committedAt;
-- committedToken and committedHolder say whose it is once a newer claim has raised the fence above it.
local function faultIn(fence)
  if not isToken(fence.token) then return 'token' end
  if not isJob(fence.job) then return 'job' end
  if fence.order and not isOrder(fence.order) then return 'order' end
  if fence.stale and not isCount(fence.stale) then return 'stale' end
  if fence.observed and not isCount(fence.observed) then return 'observed' end
  if fence.lastStaleToken and not isToken(fence.lastStaleToken) then return 'lastStaleToken' end
  if fence.lastStaleAt and not isCount(fence.lastStaleAt) then return 'lastStaleAt' end
  if fence.state == 'open' then
    if not fence.committedToken then return nil end
    if not isToken(fence.committedToken) or fence.token < fence.committedToken then return 'committedToken' end
  elseif fence.state ~= 'committed' then
    return 'state'
  end
  if not isDigest(fence.digest) then return 'digest' end
  if not isCount(fence.revision) then return 'revision' end
  if not isCount(fence.committedAt) then return 'committedAt' end
  return nil
end

-- The fence, or nil when none is stored; and the name of the first field that is not as it must be.
local function readFence(key)
  local fence, stored = {}, redis.pcall('HGETALL', key)
  if stored.err then
    local kind = redis.call('TYPE', key).ok
    if kind ~= 'hash' then return nil, 'type ' .. kind end
    stored = redis.call('HGETALL', key) -- fails again, with the reason
  end
  if #stored == 0 then return nil, nil end
  for index = 1, #stored, 2 do fence[stored[index]] = stored[index + 1] end
  return fence, faultIn(fence)
end

-- Milliseconds since 1970 as decimal text, put together as text so that no digit is lost.
local function serverMs()
  local time = redis.call('TIME')
  return time[1] .. ('000000' .. time[2]):sub(-6, -4)
end
-- end of the part that is the same in every script

local token = ARGV[1]
if not isToken(token) then return {'badtoken'} end
local floor = redis.call('GET', KEYS[1])
if floor and not isToken(floor) then return {'corrupt', 'floor'} end
if floor and token < floor then return {'stale', floor} end
if floor == token then return {'current'} end
redis.call('SET', KEYS[1], token)
return {'raised'}
