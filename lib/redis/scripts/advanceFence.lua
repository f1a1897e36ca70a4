-- advanceFence: raises the fence to a token before the work starts, so that whoever holds an older token can write
-- nothing from here on, and tells which result is there. Everything is checked before the first write.
--
-- KEYS[1]  the result, a string
-- KEYS[2]  the fence, a hash in the same slot
-- KEYS[3]  the floor of the slot, a string; it need not exist
--
-- ARGV[1]  token in canonical text: 5, 20 and 10 digits with dots between
-- ARGV[2]  job, 1 to 64 bytes
-- ARGV[3]  holder, for people who look: at most 64 bytes, may be empty
--   and these, which may be empty, and left out from the end:
-- ARGV[4]  alive: the floor since which ZooKeeper has confirmed that the claim is held
-- ARGV[5]  policy: enforce (the same as empty), or observe, which refuses nothing and counts what it would refuse
-- ARGV[6]  touch: 1 makes a reply that changes nothing write the fence as it is, so that WAIT and WAITAOF wait for it
--
-- Replies: flat arrays of bulk strings; the first item is the code, the fields follow in this order
--   advanced committedToken revision committedAt now   the fence stands at the token
--   current committedToken revision committedAt now    the fence stood at the token already; nothing was changed
--     (committedToken, revision and committedAt are empty unless a committed result is there;
--      committedAt and now are milliseconds since 1970 by the server's clock)
--   observed code field     it would have been refused with this code and field; the work may go on all the same
--   stale token             the fence is above the token, at the one given here; the refusal is counted in the fence
--   floor token             there is no fence, and the floor given here is not below the token; nothing was changed
--   foreign job             the key belongs to the job given here; nothing was changed
--   wrongtype type          the result key holds another type than a string; nothing was changed
--   corrupt field           the fence is not one that these scripts wrote, see the field; nothing was changed
--   badtoken                ARGV[1] is not a canonical token; nothing was changed
--   badargument argument    another argument is not as described above; nothing was changed
--   noperm command          the user may not run a command that is needed here; nothing was changed

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

-- begin of the part that is the same in every script that writes (a test holds it so)
local NO_ORDER = ('0'):rep(16)

-- Read before anything is written: a user that may not run TIME is refused here.
local NOW_MS = serverMs()

local function isMs(text)
  return find(text, '^[1-9]%d*$') ~= nil and (#text < 16 or (#text == 16 and text <= '9007199254740991'))
end

-- The first argument that is not as it must be; nil when all are.
local function faultInClaim(claim)
  if not isJob(claim.job) then return 'job' end
  if not claim.holder or #claim.holder > 64 then return 'holder' end
  if claim.order ~= '' and not isOrder(claim.order) then return 'order' end
  if claim.raised ~= '' and claim.raised ~= '1' then return 'raised' end
  if claim.alive ~= '' and not isToken(claim.alive) then return 'alive' end
  if claim.retentionMs ~= '' and not isMs(claim.retentionMs) then return 'retention' end
  if claim.policy ~= '' and claim.policy ~= 'enforce' and claim.policy ~= 'observe' then return 'policy' end
  if claim.touch ~= '' and claim.touch ~= '1' then return 'touch' end
  return nil
end

-- What stands in the way of a write, as the reply that says so; nil when nothing does. Where no fence is stored, the
-- floor of the slot stands for the fences that were removed: only a claim that has been found alive since the floor
-- was set to what it is now may begin below it.
local function refusalOf(claim, fence, floorKey)
  if fence then
    if fence.job ~= claim.job then return {'foreign', fence.job} end
    if claim.token < fence.token then return {'stale', fence.token} end
    if claim.raised == '1' and fence.token < claim.token then return {'lost', fence.token} end
    return nil
  end
  local floor = redis.call('GET', floorKey)
  if floor and not isToken(floor) then return {'corrupt', 'floor'} end
  if floor and claim.token <= floor then
    if claim.alive == floor then return nil end
    return {'floor', floor}
  end
  if claim.raised == '1' then return {'lost', ''} end
  return nil
end

-- Counts a write that was refused or let through. A server that takes no writes must still tell of it.
local function count(claim, field, fence, key)
  if not fence or type(redis.pcall('HINCRBY', key, field, '1')) ~= 'number' then return end
  redis.pcall('HSET', key, 'lastStaleToken', claim.token, 'lastStaleAt', NOW_MS)
end

-- Redis before 7.0 cannot be asked what the user may do.
local function mayNot(...)
  return redis.acl_check_cmd and not redis.acl_check_cmd(...)
end
-- end of the part that is the same in every script that writes

local claim = {
  token = ARGV[1], job = ARGV[2], holder = ARGV[3], order = '', raised = '',
  alive = ARGV[4] or '', retentionMs = '', policy = ARGV[5] or '', touch = ARGV[6] or '',
}
local token = claim.token

if not isToken(token) then return {'badtoken'} end
local bad = faultInClaim(claim)
if bad then return {'badargument', bad} end

local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'string' and kind ~= 'none' then return {'wrongtype', kind} end
local fence, fault = readFence(KEYS[2])
if fault then return {'corrupt', fault} end

local refusal = refusalOf(claim, fence, KEYS[3])
if refusal then
  local code = refusal[1]
  if claim.policy == 'observe' and code ~= 'corrupt' then
    count(claim, 'observed', fence, KEYS[2])
    return {'observed', unpack(refusal)}
  end
  if code == 'stale' then count(claim, 'stale', fence, KEYS[2]) end
  return refusal
end

local committedToken, revision, committedAt = '', '', ''
local lastToken = fence and (fence.state == 'committed' and fence.token or fence.committedToken)
if kind == 'string' and lastToken then
  committedToken, revision, committedAt = lastToken, fence.revision, fence.committedAt
end

if fence and fence.token == token then
  if claim.touch == '1' then redis.call('HSET', KEYS[2], 'token', token) end
  return {'current', committedToken, revision, committedAt, NOW_MS}
end

-- What follows the first write must not fail.
local expires = fence and redis.call('PTTL', KEYS[2]) >= 0
if mayNot('HSET', KEYS[2], 'token', token) then return {'noperm', 'HSET'} end
if expires and mayNot('PERSIST', KEYS[2]) then return {'noperm', 'PERSIST'} end
if expires and not redis.acl_check_cmd then redis.call('PERSIST', KEYS[2]) end
local changed = {'token', token, 'job', claim.job, 'state', 'open', 'holder', claim.holder, 'order', NO_ORDER}
if fence and fence.state == 'committed' then
  for _, item in ipairs({'committedToken', fence.token, 'committedHolder', fence.holder or ''}) do
    changed[#changed + 1] = item
  end
end
redis.call('HSET', KEYS[2], unpack(changed))
if expires then redis.call('PERSIST', KEYS[2]) end
return {'advanced', committedToken, revision, committedAt, NOW_MS}
